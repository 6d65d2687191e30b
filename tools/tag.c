/* SPDX-License-Identifier: Apache-2.0
 *
 * leat tag: the table of options. The Python package reads the same table for leat.tag().
 */
#include "cli_python.h"

static const leat__param model[] = {
    CLI_STRING("model", 'm', NULL, "MODEL",
               "a run of leat train, a TorchScript, exported or ONNX file that gives scores of classes, or a "
               "TorchScript file that gives boxes"),
    CLI_INT("top", 'k', "0", 0, 100000, "K",
            "store this many classes or boxes per image; 0 = 5 classes, 100 boxes"),
    CLI_CHOICE("activation", 0, "softmax", "softmax|sigmoid|none",
               "turn the model's output into scores; none: it gives scores"),
    CLI_PATH("classes", 0, NULL, "FILE", "names of the classes, one per line; checkpoints have their own"),
    CLI_FLAG("logits", 0, "also store the model's output for all classes"),
    CLI_MODEL_INPUT,
    CLI_END,
};

static const leat__param run_options[] = {
    CLI_PATH("output", 'o', NULL, "PACK", "write the tags here"),
    CLI_MODEL_RUNNING,
    CLI_END,
};

const cli_command cli_cmd_tag = {
    .name = "tag",
    .summary = "predict classes or boxes of the images of a pack",
    .examples =
        (const cli_example[]){
            {"leat tag photos.leat -o tags.leat -m run", "by a model that leat train wrote"},
            {"leat tag photos.leat -o best3.leat -m model.onnx --classes names.txt --top 3",
             "by another model, with names and the three best classes"},
            {"leat tag photos.leat -o boxes.leat -m detector.pt -b 4",
             "boxes of a scripted torchvision detector"},
            {NULL, NULL}},
    .description =
        "Writes columns beside the pack: a small pack with the same rows and keys that has tag (the best "
        "class), tag_score, tag_margin (to the second), tag_entropy, tags and tag_scores (the K best). leat "
        "select balances, weighs and filters by them, leat view shows them.\n\n"
        "A TorchScript model that takes a list of images gives boxes, as torchvision's detectors do: boxes "
        "(x1, y1, x2, y2 in pixels), box_tags, box_scores, box_count, and as tag the class of the best box, "
        "or -1 without boxes. Such a model gets the images in their own size.\n\n" CLI_MODEL_PARTS,
    .args =
        (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "a pack with images"}, {.name = NULL}},
    .options = {{"Model", model}, {"Running", run_options}},
    .required = "output|model",
    .json = (const cli_key[]){{"samples", "rows written"},
                              {"counts", "images by tag"},
                              {"boxes", "boxes found, where the model gives boxes"},
                              {"not_finite", "images for which the model gave NaN or infinity"},
                              CLI_MODEL_KEYS,
                              {NULL, NULL}},
    .remote = true,
    .run = cli_python,
};
