"""One module for each task: how to draw random data, and how to write all outputs out.

Each module has

    draw(random: numpy.random.Generator, scale: float) -> Draw
        A small random problem. Feature values are about `scale` in size.
    examples(folder: pathlib.Path, draw: Draw, formulation: dict) -> list[Example]
        The examples as the program must see them, by the documentation of formats and features.
        `formulation`: {"rescaling": "margin" | "slack", "penalty": "linear" | "quadratic" | "hard",
        "kernel": bool}; with a kernel, a constant feature of --bias is part of the kernel.
    weights(folder, draw, model: Model) -> Weights
        The weights of the saved model.
"""
