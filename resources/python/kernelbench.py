

# What follows was added when this problem of KernelBench was imported: the weights of the module come as arguments, behind its inputs.
def _klineage_model():
    import torch
    torch.manual_seed(0)
    return Model(*get_init_inputs())


def _klineage_weights(model):
    """Parameters and buffers of floating-point numbers, by name."""
    weights = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: value for name, value in weights.items() if value.is_floating_point() and value.numel() > 0}


def klineage_problem():
    import inspect
    import torch

    def described(name, value):
        values = value.detach().to(torch.float64)
        return {"name": name, "dtype": str(value.dtype).replace("torch.", ""), "shape": list(value.shape), "low": float(values.min()),
                "high": float(values.max()), "mean": float(values.mean()), "deviation": float(values.std(unbiased=False))}

    model = _klineage_model()
    given = get_inputs()
    names = [parameter for parameter in inspect.signature(model.forward).parameters]
    arguments = [described(name, value) if isinstance(value, torch.Tensor) else {"name": name, "value": value}
                 for name, value in zip(names, given)]
    if len(arguments) != len(given):
        raise ValueError("the parameters of forward() are not as many as the inputs")
    with torch.no_grad():
        results = model(*given)
    if isinstance(results, torch.Tensor):
        results = (results,)
    return {"inputs": arguments, "weights": [described(name, value) for name, value in _klineage_weights(_klineage_model()).items()],
            "outputs": [described(f"out{i}" if len(results) > 1 else "out", value) for i, value in enumerate(results)]}


def run(*arguments):
    import torch
    try:
        from torch.func import functional_call
    except ImportError:  # before torch 2.0
        from torch.nn.utils.stateless import functional_call
    model = _klineage_model()
    names = list(_klineage_weights(model))
    torch.seed()  # what forward() draws itself differs each time, so that it is found: no candidate could know it
    count = len(arguments) - len(names)
    results = functional_call(model, dict(zip(names, arguments[count:])), tuple(arguments[:count]))
    return results if isinstance(results, torch.Tensor) else tuple(results)
