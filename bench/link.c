/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves byte ranges of one file over HTTP on 127.0.0.1 and simulates a slow link: every answer comes after
 * a latency, and all connections share one rate. `link FILE LATENCY_MS GBIT_PER_S` prints its port;
 * 0 Gbit/s = no limit. A thread per connection. For bench/remote_link.py.
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PIECE (64u << 10)
#define BURST_NS 2000000 /* largest idle time that is made up for */

static int file;
static long long size;
static long latency_ns;
static double ns_per_byte;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long free_at; /* when the link has sent all that was given to it */

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

static int answer(int fd, const char *head, char *piece)
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
    if (send_all(fd, text, (size_t)len) != 0) return -1;
    while (first <= last) {
        size_t want = last - first + 1 < PIECE ? (size_t)(last - first + 1) : PIECE;
        ssize_t got = pread(file, piece, want, first);
        if (got <= 0) return -1;
        pass((size_t)got);
        if (send_all(fd, piece, (size_t)got) != 0) return -1;
        first += got;
    }
    return 0;
}

static void *serve(void *arg)
{
    int fd = (int)(long)arg, one = 1;
    size_t len = 0;
    char head[8192], *piece = malloc(PIECE);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    while (piece != NULL) {
        ssize_t n = recv(fd, head + len, sizeof head - 1 - len, 0);
        if (n <= 0) break;
        len += (size_t)n;
        head[len] = '\0';
        if (strstr(head, "\r\n\r\n") == NULL) {
            if (len == sizeof head - 1) break;
            continue;
        }
        len = 0;
        if (answer(fd, head, piece) != 0) break;
    }
    free(piece);
    close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    struct stat st;
    if (argc != 4 || (file = open(argv[1], O_RDONLY)) < 0 || fstat(file, &st) != 0) return 2;
    size = st.st_size;
    latency_ns = (long)(atof(argv[2]) * 1e6);
    ns_per_byte = atof(argv[3]) > 0 ? 8 / atof(argv[3]) : 0;
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
