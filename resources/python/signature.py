# SPDX-License-Identifier: GPL-3.0-or-later
# Behind the source of a function: says what its head does, so that `workload new` needs no second description of it.
def klineage_signature():
    import inspect

    def plain(value):
        return value if isinstance(value, (bool, int, float, str)) or value is None else {"other": type(value).__name__}

    def annotation(value):
        if value is inspect.Signature.empty:
            return None
        if isinstance(value, (tuple, list)):
            return [annotation(one) for one in value]
        if isinstance(value, dict):
            return [f"{name}: {annotation(one)}" for name, one in value.items()]
        return value if isinstance(value, str) else None

    function = globals().get(KLINEAGE_FUNCTION)
    if not callable(function):
        known = [name for name, value in globals().items()
                 if inspect.isfunction(value) and not name.startswith(("_", "klineage_"))]
        return {"functions": known[:32]}
    signature = inspect.signature(function)
    parameters = []
    for parameter in signature.parameters.values():
        parameters.append({
            "name": parameter.name,
            "annotation": annotation(parameter.annotation),
            "has_default": parameter.default is not inspect.Signature.empty,
            "default": plain(None if parameter.default is inspect.Signature.empty else parameter.default),
            "is_list": parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY),
        })
    return {"parameters": parameters[:64], "returns": annotation(signature.return_annotation),
            "description": (inspect.getdoc(function) or "")[:2000]}
