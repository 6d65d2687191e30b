/* SPDX-License-Identifier: Apache-2.0
 *
 * leat curate: the table of options. The Python package runs the steps, which are other commands.
 */
#include "cli_python.h"

static const leat__param options[] = {
    CLI_PATH("output", 'o', NULL, "RUN", "folder of the run: columns, selection, report"),
    CLI_PATH("config", 'c', NULL, "FILE",
             "read steps and their options from this YAML file; given flags win"),
    CLI_INT("count", 'n', NULL, 1, 4e9, "N", "select this many images"),
    CLI_FLOAT("share", 0, "0", 0, 1, "P", "select this share of the images"),
    CLI_STRING("model", 'm', NULL, "MODEL",
               "embed by this model, as of leat embed; without: tiny, or what was trained"),
    CLI_INT("threads", 't', "0", 0, 4096, "N", "worker threads of all steps, 0 = all usable CPUs"),
    CLI_BYTES("memory", 0, "0", 0, 1e15, "budget of each step, 0 = as the step says"),
    CLI_CHOICE("from", 0, NULL, "pack|check|train|embed|tag|dedup|semantic|select|dump",
               "run this step and those after it again"),
    CLI_FLAG("force", 'f', "start from scratch: delete what an earlier run wrote there"),
    CLI_FLAG("plan", 0, "only print time, memory, disk and traffic of each step"),
    CLI_END,
};

static int run(cli *c)
{
    return cli_python_run(c, "leat._train.__main__", "Python", "leat");
}

const cli_command cli_cmd_curate = {
    .name = "curate",
    .summary = "pack, check, embed, deduplicate and select images in one run",
    .examples =
        (const cli_example[]){
            {"leat curate photos -o run --share 0.1",
             "a tenth of a folder, diverse, with the same shares of classes"},
            {"leat curate photos -o configured -c worker.yaml", "steps and options of a file"},
            {"leat curate s3://bucket/photos -o run -n 10000 --plan",
             "time, memory and traffic before it starts"},
            {"leat curate photos.leat -o run --share 0.1 --from select", "choose again"},
            {NULL, NULL}},
    .description =
        "Steps: pack, check, train, embed, tag, dedup, semantic, select, dump. train, tag and semantic run "
        "when the file names them. Each is another command, with the options of that command; false in the "
        "file switches one off. Without training and with the model tiny no PyTorch is needed.\n\n"
        "RUN gets pack.leat, check.leat, embed.leat, duplicates.leat, select.leat, selected.txt (the keys), "
        "report.html, and run.json: what each step read, dropped and took, and its limit. A local pack is "
        "read where it is.\n\n"
        "The same command again continues with the first step that is not finished or whose options or "
        "inputs have changed. A run that was killed gives the same files.\n\n"
        "Exit code 1 means that images could not be read; they are left out.",
    .args = (const cli_arg_spec[]){{.name = "SRC",
                                    .path = true,
                                    .many = true,
                                    .help = "a folder, tar shards, a pack or a place in a bucket, as of "
                                            "leat pack"},
                                   {.name = NULL}},
    .options = {{"Options", options}},
    .required = "output",
    .json = (const cli_key[]){{"samples", "images that were packed"},
                              {"selected", "images that were chosen"},
                              {"asked", "images by --count or --share, where fewer were left; else 0"},
                              {"note", "that images were chosen at random: no vectors; else empty"},
                              {"unreadable", "images that could not be read"},
                              {"steps", "of each: rows, dropped, seconds, cpu_seconds, limit, why, advice"},
                              {"list", "file with the keys of the chosen images"},
                              {"dump", "where the chosen images were written"},
                              {"report", "the page"},
                              {"seconds", "time of the run"},
                              {"hours", "--plan: of all steps together"},
                              {"memory_bytes", "--plan: of the step that needs most"},
                              {"disk_bytes", "--plan: the most at any time; of a step, what it leaves"},
                              {"report_bytes", "--plan: upper bound for report.html, in disk_bytes"},
                              {"traffic_bytes", "--plan: over the net"},
                              {"machine", "--plan: the guide's for this many images"},
                              {"short", "--plan: what does not fit"},
                              {NULL, NULL}},
    .remote = true,
    .run = run,
};
