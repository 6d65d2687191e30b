/* SPDX-License-Identifier: Apache-2.0
 *
 * leat train: the table of options. The Python package reads the same table (names, defaults, ranges,
 * choices, help) for leat.train() and for --config; training itself runs there.
 */
#include "cli_python.h"
#include "loader/defaults.h"

static const leat__param recipe[] = {
    CLI_CHOICE("method", 0, "supervised", "supervised|simclr|dino|distill", "training method"),
    CLI_STRING("model", 'm', "resnet50", "NAME",
               "resnet9|11|18|34|50|101, vit_ti|s|b, convnext_t, or a torchvision or timm name"),
    CLI_INT("epochs", 'e', "90", 1, 1e6, "N", "passes over the pack"),
    CLI_INT("batch-size", 'b', "256", 1, 1 << 20, "N", "samples per step and rank"),
    CLI_CHOICE("optimizer", 0, "auto", "auto|sgd|adamw|lamb",
               "optimizer; auto: sgd for ResNets, adamw for others"),
    CLI_FLOAT("lr", 0, "0", 0, 1e6, "LR",
              "learning rate for 256 samples, scaled with the global batch; 0 = by the optimizer"),
    CLI_PARAM("scale-lr", LEAT__PARAM_FLAG, 0, "yes", 1, 0, NULL, 0, NULL,
              "scale the learning rate with the global batch"),
    CLI_CHOICE("schedule", 0, "cosine", "cosine|onecycle|constant", "learning rate schedule"),
    CLI_FLOAT("warmup", 0, "-1", -1, 1e6, "EPOCHS", "warm-up; -1 = 5 epochs, at most a fifth of the run"),
    CLI_FLOAT("momentum", 0, "0.9", 0, 1, "M", "momentum of SGD"),
    CLI_FLOAT("weight-decay", 0, "-1", -1, 100, "W",
              "weight decay, not of norms and biases; -1 = by the optimizer"),
    CLI_FLOAT("label-smoothing", 0, "0.1", 0, 0.99, "S", "share of the target spread over all classes"),
    CLI_FLOAT("mixup", 0, "0", 0, 100, "ALPHA", "mix pairs of images; 0 = off"),
    CLI_FLOAT("cutmix", 0, "0", 0, 100, "ALPHA", "paste parts of other images; 0 = off"),
    CLI_FLOAT("mix-share", 0, "1", 0, 1, "P", "share of the batches that mixup and cutmix change"),
    CLI_FLOAT("ema", 0, "0", 0, 0.999999, "DECAY", "evaluate a moving average of the weights; 0 = off"),
    CLI_INT("accumulate", 0, "1", 1, 65536, "N", "steps whose gradients are added before an update"),
    CLI_FLOAT("clip", 0, "0", 0, 1e9, "NORM", "limit of the gradient norm; 0 = off"),
    CLI_STRING("teacher", 0, NULL, "MODEL", "distill: a model name, a TorchScript or exported file"),
    CLI_INT("dim", 0, "0", 0, 1 << 20, "N", "width of the projection; 0 = 128 for simclr, 4096 for dino"),
    CLI_FLOAT("temperature", 0, "0", 0, 100, "T", "temperature of the loss; 0 = by the method"),
    CLI_INT("local-crops", 0, "6", 0, 32, "N", "dino: small views of each image"),
    CLI_INT("seed", 's', "0", 0, 1e15, "N", "seed of the weights, the order and the augmentations"),
    CLI_PATH("config", 'c', NULL, "FILE", "read options from this YAML file; given flags win"),
    CLI_END,
};

static const leat__param data[] = {
    CLI_PATH("val", 0, NULL, "PACK", "evaluate on this pack"),
    CLI_INT("image-size", 0, "0", 0, 4096, "PIXELS",
            "side of the training images; 0 = 224, or the stored side of images up to 96 pixels"),
    CLI_INT("size-start", 0, "0", 0, 4096, "PIXELS",
            "begin with smaller images that grow to --image-size; 0 = off"),
    CLI_CHOICE("crop", 0, "auto", "auto|resized|pad|none",
               "resized: random part, resized; pad: shifted by up to an eighth"),
    CLI_FLOAT("flip", 0, "0.5", 0, 1, "P", "mirror this share of the images"),
    CLI_FLOAT("erase", 0, "0", 0, 1, "P",
              "erase a square, a quarter of the side wide, in this share of the images"),
    CLI_FLOAT("jitter", 0, "-1", -1, 1, "S", "strength of colour jitter; -1 = 0, 0.5 for simclr and dino"),
    CLI_STRING("label", 0, "label", "FIELD", "int field with the classes"),
    CLI_INT("classes", 0, "0", 0, 1e7, "N", "number of classes; 0 = as the pack says"),
    CLI_CHOICE("order", 0, LEAT__DEFAULT_ORDER_NAME, LEAT__ORDER_SHUFFLED_CHOICES,
               "how samples are shuffled"),
    CLI_INT("threads", 't', "0", 0, 4096, "N", "worker threads of the loader, 0 = all usable CPUs"),
    CLI_BYTES("memory", 0, "0", 1, 0, "budget of the loader, 0 = half of what is free"),
    CLI_CHOICE("decode", 0, "auto", "auto|cpu|gpu", "where images are decoded"),
    CLI_CHOICE("on-error", 0, "fail", "fail|skip|replace", "what happens to a damaged sample"),
    CLI_END,
};

static const leat__param machine[] = {
    CLI_CHOICE("preset", 0, "balanced", "conservative|balanced|aggressive",
               "balanced: the batch as given; conservative: 3/4 of it, without compiling; "
               "aggressive: 5/4 of it"),
    CLI_CHOICE("precision", 0, "auto", "auto|32|tf32|16-mixed|bf16-mixed|bf16-true",
               "auto: bf16-mixed on a GPU that has it, else 16-mixed; 32 on a CPU"),
    CLI_CHOICE("compile", 0, "auto", "auto|on|off", "torch.compile; auto: long runs on a GPU"),
    CLI_CHOICE("channels-last", 0, "auto", "auto|on|off", "auto: convolutional models on a GPU"),
    CLI_FLAG("checkpointing", 0,
             "save memory: recompute activations in the backward pass; built-in models only"),
    CLI_CHOICE("accelerator", 0, "auto", "auto|cpu|cuda", "where the model runs"),
    CLI_INT("devices", 0, "0", 0, 1024, "N", "processes on this machine; 0 = one per GPU"),
    CLI_INT("nodes", 0, "0", 0, 65536, "N", "number of machines expected; 0 = as the launcher says"),
    CLI_FLAG("deterministic", 0, "use deterministic algorithms only"),
    CLI_FLAG("strict", 0, "fail when GPU memory runs out, instead of halving the batch"),
    CLI_FLAG("plan", 0, "print the plan first, and compare with it at the end"),
    CLI_END,
};

static const leat__param output[] = {
    CLI_PATH("output", 'o', NULL, "DIR", "write checkpoints, metrics and the report here"),
    CLI_FLAG("resume", 0, "continue from the newest checkpoint in the output folder"),
    CLI_PATH("init", 0, NULL, "CHECKPOINT", "begin with the weights of this checkpoint"),
    CLI_FLAG("force", 0, "start again in a folder that has checkpoints: they are deleted"),
    CLI_INT("save-every", 0, "0", 0, 1e12, "STEPS", "checkpoint inside epochs; 0 = at their ends only"),
    CLI_INT("keep-every", 0, "0", 0, 1e6, "EPOCHS", "keep the checkpoint of each N-th epoch; 0 = none"),
    CLI_INT("eval-every", 0, "1", 0, 1e6, "EPOCHS", "evaluate each N-th epoch and the last; 0 = last"),
    CLI_INT("log-every", 0, "50", 1, 1e9, "STEPS", "write metrics"),
    CLI_INT("max-steps", 0, "0", 0, 1e15, "N", "stop after this many updates; 0 = no limit"),
    CLI_FLAG("tta", 0,
             "evaluate each image and its mirror image; images up to 96 pixels also moved by a pixel"),
    CLI_INT("knn", 0, "0", 0, 1e6, "K",
            "k-nearest-neighbour accuracy on --val; 0 = 20 for methods without labels"),
    CLI_INT("probe", 0, "0", 0, 1e6, "EPOCHS", "train a linear classifier on the features at the end"),
    CLI_PARAM("tensorboard", LEAT__PARAM_FLAG, 0, "yes", 1, 0, NULL, 0, NULL,
              "write TensorBoard events where it is installed; default yes"),
    CLI_STRING("wandb", 0, NULL, "PROJECT", "log to this Weights & Biases project"),
    CLI_END,
};

/* A --config file may set the output; Python reads it. */
static int run(cli *c)
{
    if (!cli_given(c, "output") && !cli_given(c, "config")) return cli_usage(c, "--output DIR is missing");
    return cli_python(c);
}

const cli_command cli_cmd_train = {
    .name = "train",
    .summary = "train a model on a pack",
    .examples =
        (const cli_example[]){
            {"leat train train.leat --val val.leat -o run", "a ResNet-50, 90 epochs"},
            {"leat train train.leat --val val.leat -o run --resume", "resume an interrupted run"},
            {"leat train cifar.leat --val test.leat -o cifar-run -m resnet9 -e 16 -b 512 --schedule onecycle "
             "--tta",
             "small images, quickly"},
            {"leat train photos.leat -o simclr-run --method simclr -m resnet18", "without labels"},
            {"torchrun --nproc-per-node 8 --no-python leat train train.leat -o run8", "eight GPUs"},
            {NULL, NULL}},
    .description =
        "Trains with PyTorch; leat loads the data. Accelerator, precision, ranks and stem are "
        "chosen automatically and shown in the first lines.\n\n"
        "The output folder gets checkpoints/ (weights as safetensors, the rest as JSON), metrics.jsonl, "
        "report.html and config.json. A run that was killed and resumed ends with the same weights as "
        "one that was not. SIGINT and SIGTERM write a checkpoint; the exit code is then 130 or 143.\n\n"
        "When GPU memory runs out in the first steps, the batch is halved and gradients are "
        "accumulated over twice as many steps.",
    .args =
        (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "train on this pack"}, {.name = NULL}},
    .options = {{"Recipe", recipe}, {"Data", data}, {"Machine", machine}, {"Output", output}},
    .json = (const cli_key[]){{"epochs", "epochs that were trained"},
                              {"steps", "updates of the weights"},
                              {"top1", "share of --val that is classified right"},
                              {"top5", "share with the right class among the first five"},
                              {"knn", "k-nearest-neighbour accuracy"},
                              {"probe", "accuracy of the linear classifier"},
                              {"loss", "mean training loss of the last epoch"},
                              {"seconds", "time of the run"},
                              {"images_per_s", "training rate, all ranks"},
                              {"data_share", "share of the time spent waiting for data"},
                              {"checkpoint", "path of the last checkpoint"},
                              {"verdict", "the doctor's verdict"},
                              {"stopped", "number of the signal that stopped the run; 0: none"},
                              {NULL, NULL}},
    .remote = true,
    .run = run,
};
