# SPDX-License-Identifier: Apache-2.0
"""JAX: python examples/jax_train.py [PACK]. A linear model on mean colours; the loss falls."""

import jax
import jax.numpy as jnp

import leat
import tiny_data

path = tiny_data.path_or_tiny()
classes = int(leat.open(path).column("label").max()) + 1
loader = leat.Loader(path, batch_size=32, seed=1, drop_last=True, as_="jax",
                     image=[leat.ops.RandomResizedCrop(32), leat.ops.ToDtype("float32")])


@jax.jit
def step(weights, image, label):
    def loss_of(w):
        logits = image.mean(axis=(2, 3)) @ w["w"] + w["b"]
        return -jax.nn.log_softmax(logits)[jnp.arange(len(label)), label].mean()

    loss, gradient = jax.value_and_grad(loss_of)(weights)
    return jax.tree.map(lambda w, g: w - 2.0 * g, weights, gradient), loss


weights = {"w": jnp.zeros((3, classes)), "b": jnp.zeros(classes)}
for epoch in range(5):
    for image, label, sample_id in loader:
        weights, loss = step(weights, image, label)
    print(f"epoch {epoch} loss {loss:.3f}")
