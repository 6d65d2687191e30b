/* SPDX-License-Identifier: Apache-2.0
 *
 * A slow link on 127.0.0.1: every answer comes after a latency, and all connections share one rate.
 * `link FILE LATENCY_MS GBIT_PER_S` serves byte ranges of one file over HTTP; `link PORT …` passes requests
 * without a body on to the server at that port of 127.0.0.1. Prints its own port; 0 Gbit/s = no limit.
 * Bodies are not copied to user space (sendfile, splice), so that the link takes little of the CPU that
 * its users are measured with. A thread per connection. For bench/remote_link.py.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PIECE (128u << 10)
#define BURST_NS 2000000 /* largest idle time that is made up for */

static int file = -1, server_port;
static long long size;
static long latency_ns;
static double ns_per_byte;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long free_at; /* when the link has sent all that was given to it */

/* One connection of a user, and the one to the server. */
typedef struct pair {
    int user, server, pipe[2];
} pair;

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(long long at)
{
    struct timespec t = {at / 1000000000LL, at % 1000000000LL};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) continue;
}

/* Waits until the link has carried `len` more bytes. */
static void pass(size_t len)
{
    if (ns_per_byte <= 0) return;
    pthread_mutex_lock(&lock);
    long long now = now_ns();
    if (free_at < now - BURST_NS) free_at = now - BURST_NS;
    free_at += (long long)((double)len * ns_per_byte);
    long long until = free_at;
    pthread_mutex_unlock(&lock);
    if (until > now) sleep_until(until);
}

static int send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n <= 0) return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Reads up to and including the blank line; *len is all that was read. The length of the head, 0 at the end.
 */
static size_t read_head(int fd, char *head, size_t room, size_t *len)
{
    const char *end;
    head[*len] = '\0';
    while ((end = strstr(head, "\r\n\r\n")) == NULL) {
        ssize_t n = *len < room - 1 ? recv(fd, head + *len, room - 1 - *len, 0) : 0;
        if (n <= 0) return 0;
        *len += (size_t)n;
        head[*len] = '\0';
    }
    return (size_t)(end - head) + 4;
}

static int answer_from_file(const pair *p, const char *head)
{
    long long first = 0, last = size - 1, n;
    char text[256];
    const char *range = strcasestr(head, "\nrange: bytes=");
    if (range != NULL && sscanf(range + 14, "-%lld", &n) == 1 && range[14] == '-')
        first = n < size ? size - n : 0;
    else if (range != NULL) sscanf(range + 14, "%lld-%lld", &first, &last);
    if (last > size - 1) last = size - 1;
    int len = snprintf(text, sizeof text,
                       "HTTP/1.1 206 Partial Content\r\nETag: \"1\"\r\n"
                       "Content-Range: bytes %lld-%lld/%lld\r\n"
                       "Content-Length: %lld\r\n\r\n",
                       first, last, size, last - first + 1);
    sleep_until(now_ns() + latency_ns);
    if (send_all(p->user, text, (size_t)len) != 0) return -1;
    while (first <= last) {
        off_t at = first;
        size_t want = last - first + 1 < PIECE ? (size_t)(last - first + 1) : PIECE;
        pass(want);
        while (at < first + (off_t)want)
            if (sendfile(p->user, file, &at, want - (size_t)(at - first)) <= 0) return -1;
        first = at;
    }
    return 0;
}

/* Passes `left` bytes of a body on through the pipe. */
static int pass_body(const pair *p, long long left)
{
    while (left > 0) {
        size_t want = left < PIECE ? (size_t)left : PIECE;
        ssize_t got = splice(p->server, NULL, p->pipe[1], NULL, want, SPLICE_F_MOVE);
        if (got <= 0) return -1;
        pass((size_t)got);
        left -= got;
        while (got > 0) {
            ssize_t n = splice(p->pipe[0], NULL, p->user, NULL, (size_t)got,
                               SPLICE_F_MOVE | (left > 0 ? SPLICE_F_MORE : 0));
            if (n <= 0) return -1;
            got -= n;
        }
    }
    return 0;
}

/* Passes a body in chunks on; `text` are its last bytes so far. Small ones only: lists of objects. */
static int pass_chunks(const pair *p, char *text, size_t len, size_t room)
{
    while (len < 5 || memcmp(text + len - 5, "0\r\n\r\n", 5) != 0) {
        size_t keep = len < 5 ? len : 5;
        memmove(text, text + len - keep, keep);
        ssize_t n = recv(p->server, text + keep, room - keep, 0);
        if (n <= 0 || send_all(p->user, text + keep, (size_t)n) != 0) return -1;
        len = keep + (size_t)n;
    }
    return 0;
}

static int answer_from_server(const pair *p, const char *head, size_t len)
{
    char text[8192];
    size_t have = 0;
    if (send_all(p->server, head, len) != 0) return -1;
    size_t text_len = read_head(p->server, text, sizeof text, &have);
    if (text_len == 0) return -1;
    const char *length = strcasestr(text, "\ncontent-length:");
    long long body =
        length != NULL && length < text + text_len && strncmp(head, "HEAD", 4) != 0 ? atoll(length + 16) : 0;
    sleep_until(now_ns() + latency_ns);
    if (send_all(p->user, text, have) != 0) return -1;
    if (strcasestr(text, "\ntransfer-encoding: chunked") != NULL)
        return pass_chunks(p, text + text_len, have - text_len, sizeof text - text_len);
    return pass_body(p, body - (long long)(have - text_len));
}

static int connect_to_server(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((unsigned short)server_port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) return fd;
    close(fd);
    return -1;
}

static void *serve(void *arg)
{
    pair p = {.user = (int)(long)arg, .server = -1, .pipe = {-1, -1}};
    int one = 1;
    size_t len = 0, head_len;
    char head[8192];
    setsockopt(p.user, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (file < 0 && ((p.server = connect_to_server()) < 0 || pipe(p.pipe) != 0)) goto end;
    if (file < 0) (void)fcntl(p.pipe[0], F_SETPIPE_SZ, 1 << 20);
    while ((head_len = read_head(p.user, head, sizeof head, &len)) > 0) {
        len = 0; /* no request comes before the answer to the one before it */
        if ((file < 0 ? answer_from_server(&p, head, head_len) : answer_from_file(&p, head)) != 0) break;
    }
end:
    close(p.user);
    if (p.server >= 0) close(p.server);
    if (p.pipe[0] >= 0) close(p.pipe[0]), close(p.pipe[1]);
    return NULL;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    struct stat st;
    if (argc != 4) return 2;
    server_port = atoi(argv[1]);
    if (server_port == 0 && ((file = open(argv[1], O_RDONLY)) < 0 || fstat(file, &st) != 0)) return 2;
    size = file >= 0 ? st.st_size : 0;
    latency_ns = (long)(atof(argv[2]) * 1e6);
    ns_per_byte = atof(argv[3]) > 0 ? 8 / atof(argv[3]) : 0;
    (void)signal(SIGPIPE, SIG_IGN);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 256) != 0) return 1;
    getsockname(listener, (struct sockaddr *)&at, &bytes);
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        pthread_t thread;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        if (pthread_create(&thread, NULL, serve, (void *)(long)fd) != 0) close(fd);
        else pthread_detach(thread);
    }
}
