/* SPDX-License-Identifier: Apache-2.0
 *
 * leat embed: the table of options. The Python package reads the same table for leat.embed().
 */
#include "cli_python.h"

static const leat__param model[] = {
    CLI_STRING("model", 'm', "tiny", "MODEL",
               "tiny (built in), a run of leat train, a TorchScript, exported or ONNX file, a "
               "torchvision or timm name"),
    CLI_FLAG("logits", 0, "store the scores of the classes and the best one instead of vectors"),
    CLI_CHOICE("dtype", 0, "float32", "float32|float16", "how vectors are stored"),
    CLI_MODEL_INPUT,
    CLI_END,
};

static const leat__param run_options[] = {
    CLI_PATH("output", 'o', NULL, "PACK", "write the vectors here"),
    CLI_MODEL_RUNNING,
    CLI_FLAG("npy", 0, "also write the vectors as a NumPy file beside the pack, to map without a copy"),
    CLI_END,
};

const cli_command cli_cmd_embed = {
    .name = "embed",
    .summary = "turn the images of a pack into vectors",
    .examples =
        (const cli_example[]){
            {"leat embed photos.leat -o vectors.leat", "the built-in embedding, no PyTorch"},
            {"leat embed photos.leat -o trained.leat -m run", "by a model that leat train wrote"},
            {"leat embed photos.leat -o scores.leat -m run --logits", "classes of new images"},
            {"leat embed photos.leat -o pretrained.leat -m timm/vit_small_patch16_224",
             "by a pretrained model"},
            {NULL, NULL}},
    .description =
        "Writes a pack with the same keys in the same order and a field 'vector'. With --logits the "
        "field is 'logits', and 'label' is the best class.\n\n" CLI_MODEL_PARTS "\n\n"
        "The built-in embedding is 224 numbers from colours, layout and edge directions, for "
        "near-duplicates, clusters and maps; it does not know objects.",
    .args =
        (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "a pack with images"}, {.name = NULL}},
    .options = {{"Model", model}, {"Running", run_options}},
    .required = "output",
    .json =
        (const cli_key[]){
            {"samples", "rows written"}, {"dim", "length of a vector"}, CLI_MODEL_KEYS, {NULL, NULL}},
    .remote = true,
    .run = cli_python,
};
