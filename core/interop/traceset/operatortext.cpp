// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/traceset/operatortext.h"

#include "core/base/listtext.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace klineage::interop {

namespace {

using kernel::DType;
using workload::PythonArrays;
using workload::Role;
using workload::Tensor;
using workload::Workload;

constexpr std::string_view operators =
#include "operatorsscript.inc"
    ;

/// A built-in oracle as a function of that text.
struct Operator {
    std::string_view oracle;
    std::string_view function;
    std::vector<std::string> results; ///< roles, in the order in which it returns them
};

const Operator *findOperator(std::string_view oracle)
{
    static const std::vector<Operator> table = {
        {"matmul_nn", "matmul_nn", {"out"}},
        {"matmul_nt", "matmul_nt", {"out"}},
        {"matmul_grouped_nn", "matmul_grouped_nn", {"out"}},
        {"softmax_rows", "softmax_rows", {"out"}},
        {"silu", "silu", {"out"}},
        {"layernorm_rows", "layernorm_rows", {"out"}},
        {"rmsnorm_rows", "rmsnorm_rows", {"out"}},
        {"add_rmsnorm_rows", "add_rmsnorm_rows", {"sum", "out"}},
        {"conv2d_nhwc", "conv2d_nhwc", {"out"}},
        {"attention_varlen", "attention_varlen", {"out"}},
        {"attention_varlen_causal", "attention_varlen", {"out"}},
        {"gated_delta_rule", "gated_delta_rule", {"out", "final_state"}},
        {"sum_rows", "sum_rows", {"out"}},
        {"cumsum_rows", "cumsum_rows", {"out"}},
        {"sort_rows", "sort_rows", {"out"}},
        {"topk_rows", "topk_rows", {"values", "indices"}},
        {"topk_sorted_rows", "topk_rows", {"values", "indices"}},
    };
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const Operator &row) { return row.oracle == oracle; });
    return found == table.end() ? nullptr : &*found;
}

/// The lines of one function of the text.
std::string functionText(std::string_view name)
{
    const std::size_t begin = operators.find("\ndef " + std::string(name) + "(");
    if (begin == std::string_view::npos)
        return {};
    const std::string_view rest = operators.substr(begin + 1);
    std::string text(rest.substr(0, rest.find("\n\n\n")));
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    return text + '\n';
}

/// A tensor's name as a parameter: Python has words of its own, and the text uses some names.
std::string parameterName(const std::string &name)
{
    static const std::set<std::string> taken = {
        "False",   "None",     "True",     "and",    "as",      "assert", "async",  "await",
        "break",   "class",    "continue", "def",    "del",     "elif",   "else",   "except",
        "finally", "for",      "from",     "global", "if",      "import", "in",     "is",
        "lambda",  "nonlocal", "not",      "or",     "pass",    "raise",  "return", "try",
        "while",   "with",     "yield",    "torch",  "results", "dict",   "tuple",  "isinstance"};
    return taken.contains(name) || findOperator(name) ? name + '_' : name;
}

std::vector<const Tensor *> tensorsOf(const Workload &workload, Role role)
{
    std::vector<const Tensor *> tensors;
    for (const Tensor &tensor : workload.tensors) {
        if (tensor.role == role)
            tensors.push_back(&tensor);
    }
    return tensors;
}

std::string head(const Workload &workload)
{
    std::vector<std::string> parameters;
    for (const Tensor *input : tensorsOf(workload, Role::Input))
        parameters.push_back(parameterName(input->name));
    return "def run(" + joined(parameters) + "):\n";
}

/// What the oracle's role names; nullptr: nothing that the workload has.
const Tensor *tensorOf(const Workload &workload, const std::string &role)
{
    const auto named = workload.oracleArgs.find(role);
    return named == workload.oracleArgs.end() ? nullptr : workload.findTensor(named->second);
}

/// What a function takes beside tensors, as the workload has it; nothing when it cannot be told.
std::optional<std::string> extraArgument(const Workload &workload)
{
    if (workload.oracle == "attention_varlen_causal")
        return ", causal=True";
    const Tensor *in = tensorOf(workload, "in");
    if (workload.oracle == "sum_rows") {
        const Tensor *out = tensorOf(workload, "out");
        return in && out && out->shape.size() == in->shape.size() ? ", keepdim=True" : "";
    }
    if (workload.oracle == "topk_rows" || workload.oracle == "topk_sorted_rows") {
        const Tensor *values = tensorOf(workload, "values");
        const auto shape =
            values ? workload.shapeOf(*values, workload.cases.front()) : Result<std::vector<std::int64_t>>();
        return shape && !shape->empty() ? std::optional(fmt::format(", k={}", shape->back())) : std::nullopt;
    }
    return "";
}

tl::unexpected<Error> unsayable(const Workload &workload, const std::string &why)
{
    return fail(ErrorCode::InvalidInput, "The workload '" + workload.name
                                             + "' cannot be a definition of FlashInfer Trace: " + why + '.');
}

Result<std::string> builtinText(const Workload &workload)
{
    const Operator *made = findOperator(workload.oracle);
    const std::string function = made ? functionText(made->function) : std::string();
    const auto extra = extraArgument(workload);
    if (function.empty() || !extra)
        return unsayable(workload, "there is no reference in Python of its oracle '" + workload.oracle + "'");
    std::string arguments;
    for (const auto &[role, name] : workload.oracleArgs) {
        const Tensor *tensor = workload.findTensor(name);
        if (tensor && tensor->role == Role::Input)
            arguments += (arguments.empty() ? "" : ", ") + (role == "in" ? std::string("source") : role) + '='
                         + parameterName(name);
    }
    std::vector<std::string> returned;
    for (const Tensor *output : tensorsOf(workload, Role::Output)) {
        const auto role =
            std::find_if(made->results.begin(), made->results.end(),
                         [&](const std::string &result) { return tensorOf(workload, result) == output; });
        if (role == made->results.end())
            return unsayable(workload, "its oracle does not give the output '" + output->name + "'");
        const std::string index =
            made->results.size() == 1 ? "" : fmt::format("[{}]", role - made->results.begin());
        returned.push_back("results" + index + ".to(torch." + datasetDtype(output->dtype) + ")");
    }
    return "import torch\n\n\n" + function + "\n\n" + head(workload)
           + "    results = " + std::string(made->function) + "(" + arguments + *extra + ")\n    return "
           + joined(returned) + "\n";
}

/// An input as the oracle is handed it.
std::string handed(const workload::PythonOracle &oracle, const Tensor &input)
{
    std::string text = parameterName(input.name);
    const bool isFloat = kernel::isFloat(input.dtype);
    const bool isPlain = input.dtype == DType::F64 || input.dtype == DType::F32 || input.dtype == DType::TF32
                         || input.dtype == DType::F16;
    if (isFloat && !oracle.declared)
        text += ".double()";
    else if (isFloat && !isPlain && oracle.arrays != PythonArrays::Torch)
        text += ".float()";
    return text
           + (oracle.arrays == PythonArrays::Numpy   ? ".cpu().numpy()"
              : oracle.arrays == PythonArrays::Lists ? ".tolist()"
                                                     : "");
}

std::string pythonText(const Workload &workload)
{
    const workload::PythonOracle &oracle = *workload.python;
    std::vector<std::string> declared;
    for (const Tensor *input : tensorsOf(workload, Role::Input))
        declared.push_back(input->name);
    const bool isPlain = oracle.arguments.empty() || oracle.arguments == declared;
    if (oracle.function == "run" && oracle.arrays == PythonArrays::Torch && isPlain)
        return oracle.source;
    std::vector<std::string> arguments;
    for (const std::string &argument : oracle.arguments.empty() ? declared : oracle.arguments) {
        const Tensor *input = workload.findTensor(argument);
        arguments.push_back(input                 ? handed(oracle, *input)
                            : argument == "true"  ? "True"
                            : argument == "false" ? "False"
                                                  : argument);
    }
    std::vector<std::string> names;
    std::vector<std::string> returned;
    for (const Tensor *output : tensorsOf(workload, Role::Output)) {
        returned.push_back(fmt::format("torch.as_tensor(results[{}], device={}.device).to(torch.{})",
                                       names.size(), parameterName(declared.front()),
                                       datasetDtype(output->dtype)));
        names.push_back("\"" + output->name + "\"");
    }
    std::string text = oracle.source;
    text += text.empty() || text.back() == '\n' ? "" : "\n";
    text += "\n\nimport torch\n\n_oracle = " + oracle.function + "\n\n\n" + head(workload)
            + "    results = _oracle(" + joined(arguments) + ")\n    if isinstance(results, dict):\n"
            + "        results = tuple(results[name] for name in (" + joined(names) + ",))\n";
    if (names.size() == 1)
        text += "    if not isinstance(results, tuple):\n        results = (results,)\n";
    return text + "    return " + joined(returned) + "\n";
}

} // namespace

const char *datasetDtype(DType dtype)
{
    switch (dtype) {
    case DType::F32:
    case DType::TF32:
        return "float32";
    case DType::F16:
        return "float16";
    case DType::BF16:
        return "bfloat16";
    case DType::F8E4M3:
        return "float8_e4m3fn";
    case DType::F8E5M2:
        return "float8_e5m2";
    case DType::I64:
        return "int64";
    case DType::I32:
        return "int32";
    case DType::I16:
        return "int16";
    case DType::I8:
        return "int8";
    case DType::F64:
    case DType::U32:
    case DType::U8:
        break;
    }
    return nullptr;
}

Result<std::string> referenceText(const Workload &workload)
{
    for (const Tensor &tensor : workload.tensors) {
        if (!datasetDtype(tensor.dtype))
            return unsayable(workload, "its tensor '" + tensor.name + "' is of the type "
                                           + kernel::toString(tensor.dtype) + ", which the format has not");
    }
    return workload.python ? Result<std::string>(pythonText(workload)) : builtinText(workload);
}

} // namespace klineage::interop
