# What a run will take, on the machine of the single-GPU guide and on others.

# its four rows: buffer as the guide counts it, and the verdict
$ guide="--samples 1281167 --model resnet50 --gpu A10G --ram 62G --cpus 16"
> for row in "32 8" "16 4" "12 3" "8 4"; do
>   set -- $row
>   leat plan $guide --workers $1 --prefetch $2 --json 2>/dev/null | jget ram.guide_buffer_bytes ram.verdict | paste -s
> done
58880000000	out of memory
14720000000	risky
8280000000	safe
7360000000	safe

# the batch, the iterations, the learning rate
$ leat plan --dtype f32 --samples 1281167 --model resnet50 --gpu A10G --ram 62G --cpus 16 --preset balanced --json > plan.json
> jget ram.batch_bytes speed.iterations_per_epoch config.lr config.workers config.prefetch vram.verdict fits < plan.json
154140672
5005
0.5
12
3
safe
true

# a plan that fits ends with 0, one that does not with 3 and the smallest change
$ leat plan --model resnet50 --gpu A10G --ram 62G --cpus 16 --workers 32 --prefetch 8 --json | jget fits fix
false
--workers 17 (instead of 32); or leat's loader with a budget of 2.11 GiB
! leat plan: does not fit; --workers 17 (instead of 32); or leat's loader with a budget of 2.11 GiB

$ leat plan --model resnet50 --gpu A10G --ram 62G --cpus 16 --workers 32 --prefetch 8 > page
! leat plan: does not fit; --workers 17 (instead of 32); or leat's loader with a budget of 2.11 GiB
= 3

$ leat plan --model resnet50 --gpu A10G --ram 62G --cpus 16 --workers 17 --prefetch 8 --json | jget fits ram.verdict
true
risky

$ leat plan --dtype f32 --model resnet50 --gpu A10G --ram 62G --cpus 16 --batch 2000 --json | jget fix
--batch 476 (instead of 2000) and lr 0.93
! leat plan: does not fit; --batch 476 (instead of 2000) and lr 0.93

# the page
$ leat plan --dtype f32 --samples 1281167 --model ViT-B/16 --gpu H200 --gpus 2 --ram 256G --cpus 32 --io-mbs 2000 --cpu-us 250 --step-ms 92.4 --epochs 90
Plan: batch 256 of 224 x 224, ViT-B/16 on 2 GPUs (H200) and 32 CPUs, 1.28M samples
(empty)
Host memory, per node: 8.70 GiB, 10.9 GiB while a validation loader is alive: safe
  █▒······································  4 % of the limit
  os                 2.79 GiB  operating system and base services
  framework          3.73 GiB  the trainer itself
  queue              1.15 GiB  batches ahead
  assembling          588 MiB  the batch being filled
  borrowed            294 MiB  by the trainer, until it releases them
  workers             106 MiB  scratch of the threads
  pages              66.3 MiB  of the pack, read ahead and in the shuffle window
  Each of the 2 loaders is allowed 1.50 GiB (memory=); together they are expected to use 2.10 GiB.
  A DataLoader with 15 workers x 4 batches would take 35.9 GiB (65.3 GiB with validation): safe.
(empty)
GPU memory: 18.4 GiB: safe
  █████···································  13 % of the limit
  weights             330 MiB
  gradients           330 MiB  of the weights, when memory is highest
  optimizer           660 MiB
  activations        16.4 GiB  kept for backward, and its own at the peak
  batch               147 MiB
  workspace          64.0 MiB  of the kernel libraries
  context             550 MiB  of the driver, outside the framework's count
  Largest batch that is safe: 1991
(empty)
Samples per second, per node
  storage         18.2k  (16.5k to 20.0k)  given
  cached          72.7k  (36.4k to 145k)  <- the next one
  cpu              120k  (114k to 126k)  given
  copy             183k  (146k to 228k)  table
  gpu             5.54k  (5.38k to 5.71k)  given  <- the limit
  together        5.54k  (5.38k to 5.71k)
  After the first epoch 100 % of the dataset is in memory.
  Keeping the GPU busy takes 5.54k samples/s: 1.4 cores.
  2503 iterations, 3m51s per epoch (3m44s to 3m58s); 90 epochs: 5h47m
(empty)
Who decodes (--decode)  samples/s per GPU  of its rate  threads it takes  GPU memory
  cpu                               2.77k        100 %                 1     588 MiB
  gpu                               2.76k        100 %                 1    2.15 GiB
  auto                              2.77k        100 %                 1    2.15 GiB
(empty)
What if: none of these would help:
  --order quasi_random; leat pack --images mix --mix-raw 0.5;
  leat pack --images raw; leat pack --max-side 400; leat pack --quality 90;
  whole dataset cached in memory; --cpus 64; --dtype u8 (normalise on the GPU)
(empty)
Configuration
  batch 256 per GPU, threads 15, prefetch 4, order random, cache os, memory 1.50 GiB
  precision bf16-mixed, not compiled, lr 0.0005 for a total batch of 512
(empty)
GPUs  nodes  total batch  workers       lr  RAM per node  guide: 8 GB x GPUs + 5 GB
   1      1          256       31  0.00025      5.79 GiB  > 13 GB
   2      1          512       30   0.0005      8.70 GiB  > 21 GB
   4      1         1024       28    0.001      14.6 GiB  > 37 GB
   8      1         2048       24    0.002      27.6 GiB  > 69 GB
(empty)
Notes
  image size not known: 500 x 375 assumed
  bytes per sample not known: 110 KB assumed (ImageNet's mean)

# a mix without raw images costs what kept ones do, one with only raw what raw ones do
$ same="--samples 1000 --gpus 0 --ram 8G --cpus 2 --storage nvme --sample-bytes 110000 --json"
> cost() { leat plan $same "$@" | jget speed.cpu_us_per_sample; }
> test $(cost --images mix --mix-raw 0) = $(cost --images keep) && echo keep
> test $(cost --images mix --mix-raw 1) = $(cost --images raw) && echo raw
> leat plan $same --images mix --mix-raw 0 | jget speed.sources.cpu | cut -c1-6
keep
raw
table:

# the order is the default or the one asked for; what quasi_random would bring has a price
$ big="--samples 1281167 --gpus 0 --ram 16G --cpus 8 --sample-bytes 110000 --cpu-us 400"
> for order in "" "--order sequential" "--order quasi_random"; do leat plan $big --storage hdd $order --yaml | grep -e order: -e cache:; done
> leat plan $big --storage hdd | grep quasi
> leat plan $big --storage hdd --json | jget ram.borrowed_bytes > /dev/null && echo borrowed
> leat plan $big --storage nvme --json | jget no_gain
order: random
cache: os
order: sequential
cache: os
order: quasi_random
cache: os
  --order quasi_random                         1.36k  6.82x  io
borrowed
--order quasi_random; leat pack --images mix --mix-raw 0.5; leat pack --images raw; whole dataset cached in memory

# a bucket: the link, no page cache, the traffic and what a disk cache saves
$ bucket="--samples 1000000 --sample-bytes 100000 --storage bucket --gpus 0 --ram 62G --cpus 16 --epochs 10"
> leat plan $bucket --gbps 1 --order sequential | grep -e "^  storage" -e per.epoch -e disk:DIR.with
> leat plan $bucket --gbps 10 --order random | grep quasi
> leat plan $bucket --order quasi_random --json | jget traffic.run_requests
  storage         1.19k  (1.00k to 1.25k)  given  <- the limit
  3907 iterations, 14m02s per epoch (13m20s to 16m40s); 10 epochs: 2h20m
  per epoch 93.1 GiB in 20.9k requests; 10 epochs: 931 GiB in 208k requests
  --cache disk:DIR with 93.1 GiB per node saves 838 GiB
  --order quasi_random                         8.39k  3.98x  io
1907446

$ leat plan --samples 1000 --storage bucket --gbps 1 --io-mbs 100
! leat plan: --gbps and --io-mbs both set the rate of the storage: give one of them (see leat plan --help)
= 2

$ leat plan --samples 1000 --storage nvme --gbps 1
! leat plan: --gbps is the link to a bucket: the storage is nvme (use --io-mbs) (see leat plan --help)
= 2

# settings that leat load reads
$ leat plan --dtype f32 --samples 50000 --model resnet18 --gpu T4 --ram 16G --cpus 4 --yaml
# Written by `leat plan`; read by `leat load --config`.
batch: 256
size: 224
dtype: f32
order: random
cache: os
threads: 3
epochs: 1
memory: 1777957376
prefetch: 4
# trainer: precision 16-mixed, compile false, lr 0.5 for a total batch of 256 on 1 node with 1 GPU

# the pipeline that was planned, as leat load reads it
$ leat plan --samples 50000 --gpus 0 --ram 16G --cpus 4 --no-measure --ops 'Resize((64,64)); RandomInvert(0.5)' --yaml | grep -v '^#' > ops.yaml
> grep -c -e ^size -e ^dtype ops.yaml; grep ^ops ops.yaml
> leat plan --samples 50000 --gpus 0 --ram 16G --cpus 4 --crop center --image 64 --yaml | grep -e crop -e size
0
ops: "Resize((64,64)); RandomInvert(0.5)"
size: 64
crop: center

$ leat plan --samples 50000 --gpus 0 --ram 16G --cpus 4 --workers 4 --yaml
! leat plan: --yaml has no effect with --workers (see leat plan --help)
= 2

$ leat plan --model resnet50 --gpu A10G --ram 62G --cpus 16 --workers 0
! leat plan: --workers 0 loads in the process that trains, which is not planned: give their number, or -1 for all usable (see leat plan --help)
= 2

# a model without a GPU: no hours as if the loader were all
$ leat plan --samples 1281167 --model resnet50 --gpus 0 --ram 62G --cpus 16 --storage nvme --epochs 90 | grep -e iterations -e "the trainer is"
> leat plan --samples 1281167 --model resnet50 --gpus 0 --ram 62G --cpus 16 --storage nvme --epochs 90 --json | jget speed.incomplete speed.total_seconds
  5005 iterations per epoch; how long a step takes is not known
  incomplete: the rate of the trainer is not known (--model without a GPU): the loader alone is planned
true
null

# one epoch from slow storage: the page and the JSON tell the same
$ slow="--samples 1281167 --model resnet50 --gpu A10G --ram 62G --cpus 16 --storage hdd"
> leat plan $slow | grep -e "iterations," -e "nothing is in" -e "cached in memory" -e "<- the limit"
> leat plan $slow --json | jget speed.limit speed.first_epoch_limit speed.later_epochs_limit | paste -s
> leat plan $slow --json | python3 -c 'import json,sys; s=json.load(sys.stdin)["speed"]; print(s["epoch_seconds"] == s["total_seconds"])'
  storage           200  (100 to 400)  table  <- the limit
  together          200  (100 to 400)  nothing is in memory yet
  5005 iterations, 1h47m per epoch (53m23s to 3h34m)
  whole dataset cached in memory                 882  4.41x  gpu
io	io	io
True

# a GPU that is too small: the change it names fits
$ leat plan --model vit_l --ram 64G --cpus 16 --vram 4G --batch 1 --json 2>/dev/null | jget fix
> leat plan --model vit_l --ram 64G --cpus 16 --vram 6.82G --batch 1 --json | jget vram.verdict
a GPU with at least 6.82 GiB of memory
safe

# one value
$ leat plan --dtype f32 --model resnet50 --gpu A10G --ram 62G --step-ms 256 --cpu-us 2000 --solve cpus
> leat plan --dtype f32 --model resnet50 --gpu A10G --ram 62G --cpus 16 --step-ms 256 --cpu-us 2000 --solve gpus
> leat plan --model resnet50 --gpu A10G --cpus 16 --workers 16 --prefetch 4 --solve ram --json
> test $(leat plan --dtype f32 --model resnet50 --gpu A10G --ram 62G --cpus 16 --solve batch) -gt 384
3
5
{"version":1,"field":"ram","value":77174703104,"reason":null}

$ leat plan --dtype f32 --model vit_l --vram 1G --ram 62G --cpus 16 --solve batch
! leat plan: no --batch is safe
= 3

$ leat plan --dtype f32 --model vit_l --vram 1G --ram 62G --cpus 16 --solve batch --json
{"version":1,"field":"batch","value":null,"reason":"no --batch is safe"}
! leat plan: no --batch is safe
= 3

# no number for unknown GPUs; no batch beyond the dataset
$ leat plan --model resnet18 --ram 16G --cpus 4 --vram 16G --batch 256 --gpu ours --solve gpus
! leat plan: solving for the number of GPUs needs the GPU's rate and memory: give a known GPU and model, or the GPU's memory and a measured step time (see leat plan --help)
= 2

$ leat plan --samples 7 --gpus 0 --ram 500G --cpus 16 --image 32 --dtype u8 --solve batch
7
! leat plan: warning: memory does not limit the batch: this is the whole dataset

$ leat plan --samples 7 --gpus 0 --ram 500G --cpus 16 --image 32 --dtype u8 --solve batch --json | jget reason
memory does not limit the batch: this is the whole dataset
! leat plan: warning: memory does not limit the batch: this is the whole dataset

# a stage that does not fit names the smallest change; numbers that are too large together name their options
$ leat plan --stage CaptionGeneration --samples 1000 --gpu T4 --json | jget fix
GPUs with 24 GB (--vram 22889M)

$ leat plan --stage CaptionGeneration --samples 1000 --gpu T4 > /dev/null
! leat plan: CaptionGeneration does not fit this GPU's memory. Smallest change: GPUs with 24 GB (--vram 22889M)
= 3

$ leat plan --stage CaptionGeneration --samples 1000 --vram 22889M --json | jget fits
true

$ leat plan --samples 100000000000000 --sample-bytes 900G
! leat plan: --samples, --sample-bytes, --width and --height are out of range: a dataset of more than 2^58 bytes (see leat plan --help)
= 2

# the least memory of a machine, beside a limit of the job: as it is given then
$ job="--samples 100000 --gpus 0 --cpus 4 --dtype f32 --batch 256"
> ram=$(leat plan $job --solve ram | cut -d ' ' -f 1); echo $ram
> leat plan $job --limit 8G --solve ram | cut -d ' ' -f 1
> for one in $ram $((ram - 1)); do leat plan $job --ram $one --limit 8G --json | jget ram.verdict; done
7080081280
7080081280
safe
risky

$ leat plan --samples 100000 --gpus 0 --cpus 4 --dtype f32 --batch 256 --limit 1G --solve ram
! leat plan: no --ram is safe with --limit 1.00 GiB: a limit of 3330081280 (3.10 GiB) is
= 3

$ leat plan --samples 100000 --gpus 0 --cpus 4 --dtype f32 --batch 256 --memory 10M --solve ram
! leat plan: no --ram is safe with --memory 10.0 MiB, which is too small for the loader
= 3

$ leat plan --model resnet50 --gpu T4 --batch 4000 --cpus 4 --solve ram
! leat plan: no --ram is safe: the GPU's memory is too small for --batch 4000
= 3

# a machine and a limit that are both too small: the change names both
$ both="--samples 100000 --model resnet50 --gpu A100 --gpus 2 --cpus 4 --threads 1 --prefetch 1"
> leat plan $both --ram 4G --limit 2G --json 2>/dev/null | jget fix
a machine with at least 7.78 GiB of memory and a limit of at least 4.84 GiB of memory

# of a limit and the machine's memory the smaller one counts
$ leat plan --samples 100000 --model resnet50 --gpu A100 --gpus 2 --cpus 4 --ram 4G --limit 16G --json 2>/dev/null | jget fits facts.ram_bytes
false
4294967296

# machines on each side of an edge
$ for n in 100000 100001 1000000 1000001; do leat plan --recommend images --samples $n --json | jget machine; done
> for b in 9GB 10GB 100GB 101GB 1000GB 1001GB; do leat plan --recommend text --dataset-bytes $b --samples 1000 --json | jget row; done | paste -s
> for v in 999 1000 10000 10001 100001; do leat plan --recommend video --videos $v --json | jget gpus_high; done | paste -s
> leat plan --recommend images --video-hours 16.6667 --fps 30 --json | jget machine
g4dn.xlarge
g4dn.2xlarge
g4dn.2xlarge
g4dn.4xlarge
0	1	1	2	3	4
2	8	8	32	32
g4dn.4xlarge

$ leat plan --dtype f32 --recommend images --samples 5000 --model vit_l
Nothing in the guide fits
  largest tried          row 3 of its table
  nodes                  1
  GPUs                   1
  GPU                    T4
  vCPUs                  16
  memory per node        64 GB
  memory needed          7.34 GB
  GPU memory needed      50.6 GB of 16.1 GB
  rule of thumb          64 GB of memory and 32 GB of GPU memory for 16 vCPUs
  raised                 2 rows
  note                   needs a GPU with more memory: H100 is the least that fits
  source                 Lightly Worker, "Hardware recommendations": up to 100,000 / up to 1 million / more images or video frames
! leat plan: needs a GPU with more memory: H100 is the least that fits
= 3

# fuzzy deduplication
$ leat plan --documents 1000000000 --memory 24GB
Signatures in memory (the guide's formula)
  all bands              1.91 TiB
  bands at once          1: 97.6 GiB, 20 passes; not even one band fits the limit
leat dedup fuzzy
  memory                 11.9 GiB
  disk                   305 GiB for work files, 2 passes over the text

$ leat plan --documents 1000000 --bands-per-iteration 5 --json | jget guide_bytes passes
524000000
4

# predicted against measured
$ printf '%s\n' '{"epoch":0,"samples":10000,"bad_samples":0,"seconds":5.5,"samples_per_s":1818.2,"cpu_seconds":10,"peak_rss_bytes":950000000,"wait_seconds":1}' '{"epoch":1,"samples":10000,"seconds":5.0,"cpu_seconds":10,"peak_rss_bytes":960000000,"wait_seconds":0.5}' > run.json
> leat plan --dtype f32 --samples 10000 --cpus 2 --ram 8G --threads 2 --gpus 0 --cpu-us 1000 --io-mbs 10000 --prefetch 3 --compare run.json
                                predicted     measured     error
samples/s                           2.00k        1.90k    +5.0 %  inside the interval
seconds per epoch                       5         5.25    -4.8 %
CPU microseconds per sample         1.00k        1.00k    +0.0 %
peak memory                       919 MiB      916 MiB    +0.4 %

# a run of another pack
$ leat plan --dtype f32 --samples 400 --cpus 2 --ram 8G --threads 2 --gpus 0 --cpu-us 1000 --io-mbs 10000 --compare run.json > /dev/null
! leat plan: warning: the run had 10000 samples per epoch, the plan has 400: is it of another pack?

# a run with another batch
$ sed 's/"samples":10000/"batches":40,&/' run.json > batch.json
> for b in 256 128; do leat plan --batch $b --dtype f32 --samples 10000 --cpus 2 --ram 8G --threads 2 --gpus 0 --cpu-us 1000 --io-mbs 10000 --compare batch.json > /dev/null; done
! leat plan: warning: the run had batches of 250 samples, the plan has 128: was it another --batch?

$ leat plan --dtype f32 --samples 10000 --cpus 2 --ram 8G --gpus 0 --compare nowhere.json
! leat plan: nowhere.json: No such file or directory
= 4

$ echo '{"verdict":"fine"}' > other.json; leat plan --dtype f32 --samples 10000 --cpus 2 --ram 8G --gpus 0 --compare other.json
! leat plan: other.json: line 1 has no samples or seconds: is it from leat load --json?
= 4

# wrong usage that the table cannot see
$ leat plan --dtype f32 --model resnet51 --gpu A10G
! leat plan: unknown model 'resnet51' (did you mean 'resnet50'?); any model can be given as 'generic' with its parameters and activation bytes per sample (see leat plan --help)
= 2

$ leat plan --dtype f32 --model resnet50 --gpu A1000
! leat plan: unknown GPU 'A1000' (did you mean A10, A100, A100-80GB?); for others give --vram and --step-ms (see leat plan --help)
= 2

$ leat plan --dtype f32 --model generic --gpu A10G
! leat plan: model 'generic' needs its parameters and its activation bytes per sample (see leat plan --help)
= 2

$ leat plan
! leat plan: nothing to plan: give the data (--dataset PACK, or --samples N), the model (--model NAME), or both (see leat plan --help)
= 2

$ leat plan --video-hours 1 --samples 5
! leat plan: --samples and --video-hours both set the number of samples: give one of them (see leat plan --help)
= 2

$ leat plan --threads 4 --workers 4
! leat plan: --threads is for leat, --workers for process-based loaders: give one of them (see leat plan --help)
= 2

$ for o in "--params 9" "--gmacs 3" "--unfused-attention" "--mix-raw 0.3" "--fps 10" "--videos 9" "--width 9" "--like fast" "--bands 5" "--dataset-bytes 1G"; do
>   leat plan --samples 9 --model resnet50 $o || true; done
! leat plan: --params has an effect only with --model generic (see leat plan --help)
! leat plan: --gmacs has an effect only with --model generic (see leat plan --help)
! leat plan: --unfused-attention has an effect only with --model vit (see leat plan --help)
! leat plan: --mix-raw has an effect only with --images mix (see leat plan --help)
! leat plan: --fps has an effect only with --video-hours (see leat plan --help)
! leat plan: --videos has an effect only with --recommend video (see leat plan --help)
! leat plan: --width has an effect only with --height (see leat plan --help)
! leat plan: --like has an effect only with --dataset (see leat plan --help)
! leat plan: --bands has an effect only with --documents or --text (see leat plan --help)
! leat plan: --dataset-bytes has an effect only with --documents or --recommend (see leat plan --help)

# a flag that is turned off is named as it was typed; --solve finds a value that is not given
$ for o in "--samples 9 --no-measure" "--samples 9 --measure" "--text 1G --no-measure" "--samples 9 --workers 2 --no-measure" "--samples 9 --gpus 0 --no-compile" "--samples 9 --ram 8G --gpus 0 --batch 7 --solve batch" "--model resnet50 --gpu T4 --cpus 8 --solve cpus" "--dataset p.leat --measure --cpu-us 5"; do
>   leat plan $o || true; done
! leat plan: --no-measure has an effect only with --dataset or --ops (see leat plan --help)
! leat plan: --measure has an effect only with --dataset or --ops (see leat plan --help)
! leat plan: --no-measure has no effect with --text (see leat plan --help)
! leat plan: --no-measure has no effect with --workers (see leat plan --help)
! leat plan: --no-compile has no effect with --gpus 0 (see leat plan --help)
! leat plan: --batch has no effect with --solve batch, which finds it (see leat plan --help)
! leat plan: --cpus has no effect with --solve cpus, which finds it (see leat plan --help)
! leat plan: --measure has no effect with --cpu-us: nothing would be measured (see leat plan --help)

$ leat plan --samples 1000 --gpus 0 --ram 8G --cpus 8 --workers 4 --loader leat --json | jget config.workers
4
! leat plan: warning: --workers counts as --threads: --loader leat has no worker processes

# CPUs that are left over, in the plan and in the table
$ leat plan --model resnet50 --gpu A10G --gpus 3 --ram 250G --cpus 16 --samples 1000000 | grep -e "^   3 .* 1 CPU not used" -e "not used:"
> leat plan --model resnet50 --gpu A10G --gpus 3 --ram 250G --cpus 16 --json | jget scale.4.unused_cpus
   3      1 * > 29 GB  1 CPU not used (glob)
  1 of 16 CPUs is not used: each of the 3 GPUs has the same number of threads
1

# answers that do not use an option say so
$ for o in "--text 500G --model resnet50" "--text 500G --stage quality" "--documents 9 --epochs 2" "--stage quality --batch 7" "--recommend images --samples 9 --cpus 1" "--recommend video --videos 9 --samples 3" "--samples 9 --model resnet50 --solve batch --yaml" "--text 1G --memory 1G --limit 2G"; do
>   leat plan $o || true; done
! leat plan: --model has no effect with --text (see leat plan --help)
! leat plan: --stage has no effect with --text (see leat plan --help)
! leat plan: --epochs has no effect with --documents (see leat plan --help)
! leat plan: --batch has no effect with --stage (see leat plan --help)
! leat plan: --cpus has no effect with --recommend images (see leat plan --help)
! leat plan: --samples has no effect with --recommend video (see leat plan --help)
! leat plan: --yaml has no effect with --solve (see leat plan --help)
! leat plan: --memory and --limit both set the memory limit: give one of them (see leat plan --help)

$ leat plan --text 500G --memory 64G --cpus 32 --bands 14 --hashes 112 | grep -e "all 14" -e assumed
> leat plan --text 500G --memory 64G --cpus 32 --storage ssd | grep -c assumed || true
Storage not given: an NVMe disk of 2.5 GB/s is assumed (--storage, --io-mbs)
  memory                 114 GB for all 14 bands at once, by its formula
0

# GPU and host memory are both too small: leat's loader needs the GPU's batch, too
$ leat plan --samples 1000000 --cpus 4 --gpu A100 --model resnet18 --batch 4096 --workers 8 --ram 24G 2>/dev/null | grep -o "or --batch .*dtype u8"
or --batch 3076 and leat's loader with --dtype u8

# the limit that is given may be of a larger machine than this one
$ leat plan --text 500G --memory 900G --cpus 32 | grep "at once fit"
> leat plan --documents 125000000 --memory 1T | grep "at once"
  by its formula         20 of 20 bands at once fit the limit: 1 pass
  bands at once          20: 244 GiB, 1 pass

# bands and hashes that do not go together: what was given, and what is a default
$ for o in "--text 1G --bands 14" "--documents 9 --bands 14" "--documents 9 --hashes 15" "--text 1G --bands-per-iteration 30" "--documents 9 --bands-per-iteration 30" "--text 1G --bands 512 --hashes 512"; do
>   leat plan $o || true; done
! leat plan: --hashes 260 (the default) is not a multiple of --bands 14 (see leat plan --help)
! leat plan: --hashes 260 (the default) is not a multiple of --bands 14 (see leat plan --help)
! leat plan: --hashes 15 is not a multiple of --bands 20 (the default) (see leat plan --help)
! leat plan: --bands-per-iteration 30 is more than the 14 bands (see leat plan --help)
! leat plan: --bands-per-iteration 30 is more than the 20 bands (see leat plan --help)
! leat plan: 512 bands of 1 hashes each: leat has at most 256 bands and 1024 hashes in all (--bands, --hashes) (see leat plan --help)

$ leat plan --recommend text
! leat plan: --recommend text needs --dataset-bytes (see leat plan --help)
= 2

$ leat plan --solve cpus --gpus 0
! leat plan: the least CPUs need the GPU's rate: give a known GPU and model, or a measured step time (see leat plan --help)
= 2

# every documented key is there, and no other
$ leat plan --dtype f32 --model resnet50 --gpu A10G --ram 62G --cpus 16 --batch 5000 --json 2>/dev/null | jget '?' | tr ' ' '\n' > there
> leat help --json | python3 -c '
> import json, sys
> table = next(c for c in json.load(sys.stdin)["commands"] if c["name"] == "plan")
> print(*sorted(key.removesuffix("[]") for key in table["json_keys"]), sep="\n")' > documented
> diff documented there

# stages of the guide, on four GPUs; and one that a GPU cannot hold
$ leat plan --stage quality --samples 8000000 --gpus 4 --gpu A10G --json | jget per_s seconds batch | paste -s -d ' '
4000 2000 64

$ leat plan --stage caption --gpus 1 --gpu T4 --json | jget fits vram_needed_bytes | paste -s -d ' '
false 24000000000

$ CUDA_VISIBLE_DEVICES= leat plan --stage caption --json | jget fits seconds | paste -s -d ' '
null null

# a GPU that is not known, or none: the stage cannot be checked
$ leat plan --stage caption --gpus 2 --gpu L4O
> leat plan --stage caption --gpus 0
! leat plan: unknown GPU 'L4O' (did you mean L4?); for others give --vram (see leat plan --help)
! leat plan: --stage runs on GPUs: --gpus must be at least 1 (see leat plan --help)
= 2

# the guide's edge: 100G are 100 GB
$ leat plan --recommend text --dataset-bytes 100G --json | jget gpus_low
4

# frames that are none, or too many, are not "no samples given"
$ leat plan --video-hours 0 --model resnet18
! leat plan: --video-hours: 0 is out of range (0.001 to 4000000) (see leat plan --help)
= 2

$ leat plan --recommend images --video-hours 4e6 --fps 1e6
! leat plan: --video-hours 4e+06 at --fps 1e+06 give no frames or more than 1e+14 (see leat plan --help)
= 2

# the ends of the options are accepted: 3 is a plan that does not fit
$ for more in "--h2d-gbs 1e6" "--io-mbs 1e9" "--image 65535" "--sample-bytes 1e12" "--cpu-us 1e9" "--step-ms 0.001"; do
>     leat plan --samples 1000 --model resnet18 --gpu A100 --cpus 8 --ram 64G $more >/dev/null 2>&1; echo $?; done | paste -s -d ' '
0 0 3 3 0 0
$ for more in "--recommend images --video-hours 4e6" "--recommend images --video-hours 0.001" "--recommend text --dataset-bytes 4e15" "--text 4e15" "--samples 1000 --storage bucket --gbps 1e6"; do
>     leat plan $more >/dev/null 2>&1; echo $?; done | paste -s -d ' '
0 0 0 3 0
$ for more in "--h2d-gbs 1000001" "--io-mbs 1000000001" "--image 65536" "--video-hours 4000001" "--text 4000000000000001"; do
>     leat plan $more 2>&1 >/dev/null; done
leat plan: --h2d-gbs: 1000001 is out of range (0.001 to 1000000) (see leat plan --help)
leat plan: --io-mbs: 1000000001 is out of range (0.001 to 1000000000) (see leat plan --help)
leat plan: --image: 65536 is out of range (1 to 65535) (see leat plan --help)
leat plan: --video-hours: 4000001 is out of range (0.001 to 4000000) (see leat plan --help)
leat plan: --text: 4000000000000001 is out of range (1 to 4000000000000000) (see leat plan --help)
= 2

$ leat plan --model generic --params 1 --activation-bytes 1B --gmacs 1e9 --gpu A100 --json | jget fits
true

# what is written for leat load is what it takes; options that would do nothing are refused, and an empty pack
$ few="--samples 1000 --gpus 0 --ram 8G --cpus 2 --storage nvme"
> for more in "--prefetch 2000" "--threads 5000" "--batch 2000000" "--image 20000"; do leat plan $few $more --yaml; done
> leat plan $few --prefetch 1024 --yaml | grep prefetch
prefetch: 1024
! leat plan: --yaml: leat load takes --prefetch up to 1024 (see leat plan --help)
! leat plan: --yaml: leat load takes --threads up to 4096 (see leat plan --help)
! leat plan: --yaml: leat load takes --batch up to 1048576 (see leat plan --help)
! leat plan: --yaml: leat load takes --size up to 16384 (see leat plan --help)

$ leat plan --samples 1000 --gpus 0 --ram 800G --cpus 8192 --storage nvme --yaml
! leat plan: --yaml: the plan has 8192 threads, and leat load takes up to 4096: give --threads (see leat plan --help)
= 2
$ leat plan --samples 1000 --gpus 0 --ram 8G --cpus 2 --storage nvme --epochs 2000000 --yaml
! leat plan: --yaml: leat load takes --epochs up to 1000000 (see leat plan --help)
= 2

$ leat plan --samples 1000 --gpus 0 --anonymous
! leat plan: --anonymous has an effect only with a remote --dataset (see leat plan --help)
= 2

$ leat plan --samples 1000 --gpus 0 --ca-file /etc/passwd
! leat plan: --ca-file has an effect only with a remote --dataset (see leat plan --help)
= 2

$ leat plan --samples 50000 --model resnet18 --yaml --json
! leat plan: --yaml has no effect with --json (see leat plan --help)
= 2

# ops count by the size of the image where they stand: before or after the crop
$ for ops in 'GaussianBlur(23); CenterCrop(224)' 'CenterCrop(224); GaussianBlur(23)'; do
>   leat plan --samples 1000 --gpus 0 --ram 8G --cpus 1 --width 4000 --height 2000 --no-measure --ops "$ops" --json | jget speed.cpu_us_per_sample; done | awk '{ us[NR] = $1 } END { print (us[1] > 5 * us[2]) }'
1

# the smallest change fits, which may be risky; --solve finds the least that is safe
$ vit="--model vit_l --gpu A100 --gpus 1 --cpus 3 --batch 64 --samples 100000"
> leat plan $vit --ram 3G --json 2>/dev/null | jget fix; leat plan --help | grep -o "the smallest change with which it fits"
> leat plan $vit --ram 5.25G --json | jget fits ram.verdict; leat plan $vit --ram $(leat plan $vit --solve ram --json | jget value) --json | jget ram.verdict
a machine with at least 5.25 GiB of memory
the smallest change with which it fits
true
risky
safe
