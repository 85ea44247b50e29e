// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/problems/kernelbench.h"

#include "core/base/identifier.h"
#include "core/gate/oracle/pythonoracle.h"
#include "core/workload/tolerance.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace klineage::interop {

namespace {

using nlohmann::json;
using workload::Case;
using workload::Distribution;
using workload::DistributionKind;
using workload::Role;
using workload::Tensor;
using workload::Workload;

constexpr const char *adapter =
#include "kernelbenchscript.inc"
    ;

constexpr std::size_t mostListed = 32;

const std::map<std::string, kernel::DType> torchDtypes = {
    {"float64", kernel::DType::F64},   {"float32", kernel::DType::F32}, {"float16", kernel::DType::F16},
    {"bfloat16", kernel::DType::BF16}, {"int64", kernel::DType::I64},   {"int32", kernel::DType::I32},
    {"int16", kernel::DType::I16},     {"int8", kernel::DType::I8},     {"uint8", kernel::DType::U8}};

struct Unsupported {
    std::string why;
};

class KernelBenchDrafter
{
public:
    KernelBenchDrafter(const std::string &name, const std::string &source)
    {
        m_workload.name = slugOf(name);
        m_workload.title = name;
        m_workload.oracle = "python";
        m_workload.python.emplace().source = source;
        m_workload.python->arrays = workload::PythonArrays::Torch;
    }

    Draft run(const json &said)
    {
        for (const json &input : listOf(said, "inputs"))
            addInput(input, {});
        for (const json &weight : listOf(said, "weights"))
            addInput(weight, "weight of the module");
        for (const json &output : listOf(said, "outputs"))
            addTensor(output, Role::Output);
        if (m_workload.axes.size() > 16)
            throw Unsupported{"It has more than 16 different extents"};
        if (const Status counted = countWork(m_workload); !counted)
            throw Unsupported{counted.error().message};
        Case timed;
        timed.name = "timed";
        timed.axes = m_extents;
        m_workload.cases = {timed};
        addSpreadCase(m_workload, timed, [](const Tensor &tensor) {
            return kernel::isFloat(tensor.dtype) && tensor.description.empty();
        });
        m_workload.tolerance = workload::widestTolerance(m_workload.tensors);
        m_notes.push_back(
            "It has the one shape that get_inputs() makes, so nothing is checked at another one.");
        m_notes.push_back(
            "'flops' is one for each element of an output, and 'bytes' all tensors once: correct them in workload.toml.");
        return {std::move(m_workload), std::move(m_notes)};
    }

private:
    static const json &listOf(const json &said, const char *key)
    {
        const json &list = said.at(key);
        if (!list.is_array() || list.size() > mostListed)
            throw Unsupported{"It has more than 32 " + std::string(key)};
        return list;
    }

    void addInput(const json &given, const std::string &description)
    {
        if (given.contains("value")) {
            const json &value = given.at("value");
            if (!value.is_number() && !value.is_boolean())
                throw Unsupported{"The argument '" + given.at("name").get<std::string>().substr(0, 64)
                                  + "' of forward() is neither a tensor nor a number"};
            m_workload.python->arguments.push_back(value.dump());
            return;
        }
        Tensor &tensor = addTensor(given, Role::Input);
        tensor.description = description;
        tensor.distribution = contentOf(given, tensor);
        m_workload.python->arguments.push_back(tensor.name);
    }

    Tensor &addTensor(const json &given, Role role)
    {
        Tensor tensor;
        const auto name = given.at("name").get<std::string>();
        for (const char c : name.substr(0, 60)) {
            const bool letter =
                (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
            tensor.name += letter ? c : '_';
        }
        if (!isIdentifier(tensor.name))
            tensor.name = "t_" + tensor.name;
        while (!m_names.insert(tensor.name).second)
            tensor.name += '_';
        tensor.role = role;
        const auto dtype = torchDtypes.find(given.at("dtype").get<std::string>());
        if (dtype == torchDtypes.end())
            throw Unsupported{"The tensor '" + tensor.name + "' is of the type '"
                              + given.at("dtype").get<std::string>().substr(0, 64)
                              + "', which workloads do not have"};
        tensor.dtype = dtype->second;
        std::vector<std::int64_t> shape;
        for (const json &extent : given.at("shape")) {
            if (!extent.is_number_integer()) // a conversion would take any number
                throw Unsupported{"The tensor '" + tensor.name
                                  + "' has a shape that is not of whole numbers"};
            shape.push_back(extent.get<std::int64_t>());
        }
        if (shape.empty() || shape.size() > 8)
            throw Unsupported{"The tensor '" + tensor.name + "' has " + std::to_string(shape.size())
                              + " dimensions; a workload's tensors have 1 to 8"};
        for (const std::int64_t extent : shape) {
            if (extent < 1)
                throw Unsupported{"The tensor '" + tensor.name + "' has no elements"};
            tensor.shape.push_back(kernel::Expression::parse(axisOf(extent)).value());
        }
        m_workload.tensors.push_back(std::move(tensor));
        return m_workload.tensors.back();
    }

    /// Axes have no names there: equal extents are one.
    std::string axisOf(std::int64_t extent)
    {
        const std::string name = "D" + std::to_string(extent);
        if (m_extents.emplace(name, extent).second) {
            m_workload.axes.push_back(name);
            m_names.insert(name);
        }
        return name;
    }

    /// As like what the problem makes as a distribution can be.
    static Distribution contentOf(const json &given, const Tensor &tensor)
    {
        const double low = given.at("low").get<double>();
        const double high = given.at("high").get<double>();
        const double mean = given.at("mean").get<double>();
        const double deviation = given.at("deviation").get<double>();
        Distribution content;
        if (!kernel::isFloat(tensor.dtype)) {
            content.kind = DistributionKind::Integers;
            content.low = low;
            content.high = std::max(high, low + 1);
        } else if (!(deviation > 0)) { // all alike: drawn around it, so that it shows whether it is used
            content.mean = std::isfinite(mean) ? mean : 0;
            content.stddev = 0.25;
        } else if (low >= 0 && high <= 1) {
            content.kind = DistributionKind::Uniform;
        } else if (high - low < 4 * deviation) { // flat, as initial weights are
            content.kind = DistributionKind::Uniform;
            content.low = low;
            content.high = high;
        }
        return content;
    }

    Workload m_workload;
    std::vector<std::string> m_notes;
    std::set<std::string> m_names;
    std::map<std::string, std::int64_t> m_extents;
};

} // namespace

bool looksLikeKernelBench(std::string_view text)
{
    return text.find("class Model") != std::string_view::npos
           && text.find("def get_inputs") != std::string_view::npos
           && text.find("def get_init_inputs") != std::string_view::npos;
}

Result<Draft> draftOfDescription(const std::string &name, const std::string &source,
                                 const std::string &description)
{
    try {
        Draft draft = KernelBenchDrafter(name, source).run(json::parse(description));
        const auto read =
            workload::parseWorkload(workload::writeWorkload(draft.workload), name.substr(0, 100));
        if (!read)
            return tl::unexpected(read.error());
        return draft;
    } catch (const Unsupported &unsayable) {
        return fail(ErrorCode::InvalidInput, unsayable.why + '.');
    } catch (const json::exception &) {
        return fail(ErrorCode::InvalidInput, "Its process described the problem as no problem is.");
    }
}

std::string withValues(const std::string &source, const std::map<std::string, std::string> &values,
                       std::vector<std::string> &notes)
{
    std::string result;
    for (std::size_t begin = 0; begin < source.size();) {
        const std::size_t end = std::min(source.find('\n', begin), source.size());
        std::string line = source.substr(begin, end - begin);
        begin = end + 1;
        const std::size_t length = std::min(line.find_first_of(" ="), line.size());
        const std::size_t sign = line.find_first_not_of(' ', length);
        const auto given = values.find(line.substr(0, length));
        const bool assigns =
            sign != std::string::npos && line[sign] == '=' && line.compare(sign, 2, "==") != 0;
        if (given != values.end() && assigns && json::accept(given->second)
            && json::parse(given->second).is_number()) {
            notes.push_back("'" + line.substr(0, 200) + "' was replaced: it is " + given->second + ".");
            line = given->first + " = " + given->second;
        }
        result += line + '\n';
    }
    return result;
}

Result<Draft> draftOfKernelBench(const std::string &name, const std::string &text,
                                 const std::map<std::string, std::string> &values,
                                 const std::stop_token &stop)
{
    std::vector<std::string> notes;
    workload::PythonOracle oracle;
    oracle.source = withValues(text, values, notes) + adapter;
    oracle.arrays = workload::PythonArrays::Torch;
    auto process = gate::OracleProcess::start(oracle, stop);
    if (!process)
        return tl::unexpected(process.error());
    const auto said = (*process)->tell("klineage_problem", stop);
    if (!said)
        return tl::unexpected(said.error());
    auto draft =
        draftOfDescription(name, oracle.source, said->dump(-1, ' ', false, json::error_handler_t::replace));
    if (draft)
        draft->notes.insert(draft->notes.end(), notes.begin(), notes.end());
    return draft;
}

} // namespace klineage::interop
