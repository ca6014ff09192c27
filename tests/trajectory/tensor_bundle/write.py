"""Write the bundles of this folder again: python write.py, with TensorFlow 2.21 and tf_keras 2.21.

Two checkpoints of a model as in TensorFlow's tutorial on text generation, by its own callback, with
what the model gives; and a GPT-2 as gpt-2-simple saves it, with a slot of an optimiser.
"""

import json
import os
from pathlib import Path

import numpy as np

os.environ |= {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
import tensorflow as tf

HERE = Path(__file__).parent
GPT2 = {"n_vocab": 11, "n_ctx": 6, "n_embd": 8, "n_head": 2, "n_layer": 1}
SHAPES = {
    "wte": (11, 8),
    "wpe": (6, 8),
    "ln_f/g": (8,),
    "ln_f/b": (8,),
    "h0/ln_1/g": (8,),
    "h0/ln_1/b": (8,),
    "h0/attn/c_attn/w": (1, 8, 24),
    "h0/attn/c_attn/b": (24,),
    "h0/attn/c_proj/w": (1, 8, 8),
    "h0/attn/c_proj/b": (8,),
    "h0/ln_2/g": (8,),
    "h0/ln_2/b": (8,),
    "h0/mlp/c_fc/w": (1, 8, 32),
    "h0/mlp/c_fc/b": (32,),
    "h0/mlp/c_proj/w": (1, 32, 8),
    "h0/mlp/c_proj/b": (8,),
}


def write_tutorial(folder):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Embedding(7, 4, batch_input_shape=[2, None]),
            layers.GRU(5, return_sequences=True),
            layers.Dense(7),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    ids = np.arange(56).reshape(8, 7) % 7
    keep = tf.keras.callbacks.ModelCheckpoint(
        str(folder / "ckpt_{epoch}"), save_weights_only=True
    )
    options = {"epochs": 2, "batch_size": 2, "verbose": 0, "callbacks": [keep]}
    model.fit(ids, (ids + 1) % 7, **options)
    np.savez(folder / "given.npz", ids=ids[:2], logits=model(ids[:2]))


def write_gpt2(folder):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        rng = np.random.default_rng(0)
        variables = [
            v1.Variable(rng.normal(size=shape).astype("f"), name=f"model/{name}")
            for name, shape in SHAPES.items()
        ]
        variables.append(v1.Variable(np.ones(3, "f"), name="model/wte/Adam"))
        variables.append(v1.Variable(np.int64(20), name="counter"))
        session.run(v1.global_variables_initializer())
        saver = v1.train.Saver(variables)
        for step in (20, 40):
            saver.save(session, str(folder / "model"), step, write_meta_graph=False)
            session.run([variable.assign(2 * variable) for variable in variables])
    (folder / "hparams.json").write_text(json.dumps(GPT2))


for name, write in (("tutorial", write_tutorial), ("gpt2", write_gpt2)):
    (HERE / name).mkdir(exist_ok=True)
    write(HERE / name)
    (HERE / name / "checkpoint").unlink()  # absolute paths
