# SPDX-License-Identifier: Apache-2.0
"""Plain PyTorch: python examples/torch_train.py [PACK]. The loss falls."""

import torch

import leat
import tiny_data

path = tiny_data.path_or_tiny()
classes = int(leat.open(path).column("label").max()) + 1
loader = leat.Loader(path, batch_size=32, seed=1, image=[
    leat.ops.RandomResizedCrop(32), leat.ops.RandomHorizontalFlip(), leat.ops.ToDtype("float32")])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                            torch.nn.Flatten(), torch.nn.Linear(16, classes))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for epoch in range(5):
    for image, label, sample_id in loader:
        loss = torch.nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
