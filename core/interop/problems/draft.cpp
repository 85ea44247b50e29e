// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/problems/draft.h"

#include "core/base/identifier.h"
#include "core/base/listtext.h"
#include "core/workload/tolerance.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace klineage::interop {

namespace {

using kernel::DType;
using workload::Case;
using workload::Distribution;
using workload::DistributionKind;
using workload::Role;
using workload::Tensor;
using workload::Workload;

constexpr double mostTimedBytes = 256.0 * (1 << 20);
constexpr std::int64_t mostHidden = 300; ///< extent of a drawn axis, so that an oracle in Python stays quick
constexpr std::size_t longestExpression = 900;

const std::map<std::string, DType> definitionDtypes = {{"float64", DType::F64},
                                                       {"float32", DType::F32},
                                                       {"float16", DType::F16},
                                                       {"bfloat16", DType::BF16},
                                                       {"float8_e4m3fn", DType::F8E4M3},
                                                       {"float8_e5m2", DType::F8E5M2},
                                                       {"int64", DType::I64},
                                                       {"int32", DType::I32},
                                                       {"int16", DType::I16},
                                                       {"int8", DType::I8},
                                                       {"uint8", DType::U8},
                                                       {"uint32", DType::U32}};

bool isWordCharacter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Whether a text has the word, not as a part of another one.
bool hasWord(const std::string &text, const std::string &word)
{
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        const bool begins = at == 0 || !isWordCharacter(text[at - 1]);
        const std::size_t end = at + word.size();
        if (begins && (end == text.size() || !isWordCharacter(text[end])))
            return true;
    }
    return false;
}

/// One sentence; the first that is wrong ends the draft.
struct Unsayable {
    std::string why;
};

class DefinitionDrafter
{
public:
    DefinitionDrafter(const Definition &definition, const std::vector<Binding> &bindings,
                      const DraftOptions &options)
        : m_definition(definition)
        , m_bindings(bindings)
        , m_options(options)
    {}

    Draft run()
    {
        m_workload.name = slugOf(m_definition.name);
        m_workload.title = m_definition.name;
        m_workload.description = m_definition.description;
        checkDefinition();
        nameAxes();
        for (const DefinitionTensor &input : m_definition.inputs)
            addTensor(input, Role::Input);
        for (const DefinitionTensor &output : m_definition.outputs)
            addTensor(output, Role::Output);
        keepUsedAxes();
        countWork();
        chooseCases();
        addOwnCases();
        m_workload.tolerance = workload::widestTolerance(m_workload.tensors);
        addOracle();
        for (const std::string &key : m_definition.unread)
            note("The key '" + key + "' is not taken over.");
        return {std::move(m_workload), std::move(m_notes)};
    }

private:
    void note(std::string text) { m_notes.push_back(std::move(text)); }

    void checkDefinition() const
    {
        if (m_definition.reference.empty())
            throw Unsayable{"It has no reference that could be the oracle"};
        if (m_definition.inputs.empty() || m_definition.outputs.empty())
            throw Unsayable{"It has no inputs, or no outputs"};
    }

    /// Axes and tensors share one space of names here, and both are C identifiers.
    void nameAxes()
    {
        std::set<std::string> taken;
        for (const auto *tensors : {&m_definition.inputs, &m_definition.outputs}) {
            for (const DefinitionTensor &tensor : *tensors) {
                if (!isIdentifier(tensor.name))
                    throw Unsayable{"The tensor '" + tensor.name
                                    + "' is no C identifier of at most 64 characters"};
                if (!taken.insert(tensor.name).second)
                    throw Unsayable{"The name '" + tensor.name + "' is that of two tensors"};
            }
        }
        for (const DefinitionAxis &axis : m_definition.axes) {
            std::string name;
            for (const char c : axis.name.substr(0, 48))
                name += isWordCharacter(c) ? c : '_';
            if (!isIdentifier(name))
                name = "axis_" + name;
            while (taken.contains(name) && name.size() < 64)
                name += '_';
            if (!isIdentifier(name) || !taken.insert(name).second)
                throw Unsayable{"The axis '" + axis.name + "' cannot be named here"};
            if (name != axis.name)
                note("The axis '" + axis.name + "' is called '" + name + "'.");
            m_axisNames[axis.name] = name;
            m_axes[axis.name] = &axis;
        }
    }

    /// What an extent of that axis is over the workload's axes.
    std::string extentOf(const std::string &name, const std::string &of, std::set<std::string> within = {})
    {
        const auto axis = m_axes.find(name);
        if (axis == m_axes.end())
            throw Unsayable{"The axis '" + name + "' of " + of + " is not defined"};
        if (axis->second->kind != DefinitionAxis::Kind::Expression)
            return m_axisNames.at(name);
        if (!within.insert(name).second)
            throw Unsayable{"The axis '" + name + "' is defined by itself"};
        const std::string &text = axis->second->expression;
        if (text.find("**") != std::string::npos)
            throw Unsayable{"The axis '" + name + "' has a power, which no expression here has"};
        std::string result;
        for (std::size_t i = 0; i < text.size();) {
            std::size_t end = i;
            while (end < text.size() && isWordCharacter(text[end]))
                ++end;
            const std::string word = text.substr(i, end - i);
            if (!word.empty()) {
                result += m_axes.contains(word) ? extentOf(word, of, within) : word;
            } else {
                const bool floors = text.compare(i, 2, "//") == 0;
                result += text[i];
                end = i + (floors ? 2 : 1);
            }
            i = end;
            if (result.size() > longestExpression)
                throw Unsayable{"The axis '" + name + "' is too long an expression"};
        }
        return '(' + result + ')';
    }

    void addTensor(const DefinitionTensor &given, Role role)
    {
        const std::string what =
            std::string(role == Role::Input ? "the input '" : "the output '") + given.name + "'";
        if (!given.shape && role == Role::Input)
            return; // a number: one of the oracle's arguments
        if (!given.shape || given.shape->empty())
            throw Unsayable{what + " has no dimensions; a workload's tensors have 1 to 8"};
        if (given.shape->size() > 8)
            throw Unsayable{what + " has more than 8 dimensions"};
        const auto dtype = definitionDtypes.find(given.dtype);
        if (dtype == definitionDtypes.end())
            throw Unsayable{what + " is of the type '" + given.dtype.substr(0, 64)
                            + "', which workloads do not have"};
        if (role == Role::Input && !kernel::isFloat(dtype->second))
            throw Unsayable{what + " is of integers, and the definition does not say which ones it may hold"};
        Tensor tensor;
        tensor.name = given.name;
        tensor.role = role;
        tensor.dtype = dtype->second;
        tensor.description = given.description;
        for (const std::string &axis : *given.shape) {
            const auto extent = kernel::Expression::parse(extentOf(axis, what));
            if (!extent)
                throw Unsayable{"An extent of " + what + " cannot be read: " + extent.error().message};
            tensor.shape.push_back(*extent);
        }
        m_workload.tensors.push_back(std::move(tensor));
    }

    void keepUsedAxes()
    {
        std::set<std::string> used;
        for (const Tensor &tensor : m_workload.tensors) {
            for (const kernel::Expression &extent : tensor.shape)
                used.merge(extent.names());
        }
        for (const DefinitionAxis &axis : m_definition.axes) {
            if (used.contains(m_axisNames.at(axis.name)))
                m_workload.axes.push_back(m_axisNames.at(axis.name));
        }
        if (m_workload.axes.empty())
            throw Unsayable{"No shape has an axis"};
        if (m_workload.axes.size() > 16)
            throw Unsayable{"It has more than 16 axes"};
    }

    void countWork()
    {
        if (const Status counted = interop::countWork(m_workload); !counted)
            throw Unsayable{counted.error().message};
        if (m_options.isCounted)
            return;
        note(
            "The definition does not count operations: 'flops' is one for each element of an output, and 'bytes' all tensors once. Correct them "
            "in workload.toml, bytes above all where the operator reads only a part of an input.");
    }

    /// A value that the caller gave, as a number; nothing when there is none.
    std::optional<std::int64_t> givenAxis(const std::string &name) const
    {
        const auto given = m_options.values.find(name);
        if (given == m_options.values.end())
            return std::nullopt;
        const auto value = nlohmann::json::parse(given->second, nullptr, false);
        if (!value.is_number_integer() || value.get<std::int64_t>() < 1)
            throw Unsayable{"The value '" + given->second.substr(0, 64) + "' of the axis '" + name
                            + "' is no positive whole number"};
        return value.get<std::int64_t>();
    }

    /// The extents that a binding gives, by the names here; why it cannot be used.
    std::optional<std::string> extentsOf(const Binding &binding,
                                         std::map<std::string, std::int64_t> &extents) const
    {
        for (const DefinitionAxis &axis : m_definition.axes) {
            const std::string &name = m_axisNames.at(axis.name);
            if (std::find(m_workload.axes.begin(), m_workload.axes.end(), name) == m_workload.axes.end())
                continue;
            const auto bound = binding.axes.find(axis.name);
            if (const auto given = givenAxis(axis.name))
                extents[name] = *given;
            else if (axis.kind == DefinitionAxis::Kind::Constant)
                extents[name] = axis.value;
            else if (bound != binding.axes.end())
                extents[name] = bound->second;
            else
                return "the axis '" + axis.name + "' has no value; --set " + axis.name + "=N gives one";
        }
        return std::nullopt;
    }

    /// The oracle's arguments with a binding's numbers; why it cannot be used.
    std::optional<std::string> argumentsOf(const Binding &binding, std::vector<std::string> &arguments) const
    {
        for (const DefinitionTensor &input : m_definition.inputs) {
            const auto source = binding.inputs.find(input.name);
            const bool said = source != binding.inputs.end();
            if (input.shape) {
                if (said && source->second.type != "random" && m_options.values.empty())
                    return "the input '" + input.name + "' is '" + source->second.type.substr(0, 64)
                           + "', and contents are drawn anew for each trial here";
                arguments.push_back(input.name);
                continue;
            }
            const auto given = m_options.values.find(input.name);
            if (given != m_options.values.end())
                arguments.push_back(given->second);
            else if (said && source->second.value)
                arguments.push_back(*source->second.value);
            else
                return "the number '" + input.name + "' has no value; --set " + input.name + "=X gives one";
        }
        return std::nullopt;
    }

    double bytesOf(const std::map<std::string, std::int64_t> &extents) const
    {
        kernel::Bindings names;
        for (const auto &[axis, extent] : extents)
            names[axis] = extent;
        return m_workload.bytes.evaluateReal(names).value_or(INFINITY);
    }

    void chooseCases()
    {
        struct Shape {
            std::map<std::string, std::int64_t> extents;
            std::vector<std::string> arguments;
            double bytes = 0;
        };
        std::vector<Shape> shapes;
        std::map<std::string, int> unusable;
        std::vector<Binding> bindings = m_bindings;
        if (bindings.empty() || !m_options.values.empty())
            bindings.insert(bindings.begin(), Binding());
        for (const Binding &binding : bindings) {
            Shape shape;
            auto why = extentsOf(binding, shape.extents);
            if (!why)
                why = argumentsOf(binding, shape.arguments);
            if (why) {
                ++unusable[*why];
                continue;
            }
            shape.bytes = bytesOf(shape.extents);
            const bool known = std::any_of(shapes.begin(), shapes.end(),
                                           [&](const Shape &s) { return s.extents == shape.extents; });
            if (!known && std::isfinite(shape.bytes))
                shapes.push_back(std::move(shape));
        }
        if (shapes.empty()) {
            const std::string why =
                unusable.empty() ? "no shape of it can be evaluated" : unusable.begin()->first;
            throw Unsayable{"No workload of it can be taken: " + why};
        }
        const bool given = !m_options.values.empty();
        for (const auto &[why, count] : unusable) {
            if (!given)
                note(fmt::format("{}{} left out: {}.", count, count == 1 ? " workload is" : " workloads are",
                                 why));
        }
        std::stable_sort(shapes.begin(), shapes.end(),
                         [](const Shape &a, const Shape &b) { return a.bytes > b.bytes; });
        auto timed = std::find_if(shapes.begin(), shapes.end(),
                                  [](const Shape &shape) { return shape.bytes <= mostTimedBytes; });
        if (timed == shapes.end())
            timed = shapes.end() - 1;
        if (timed != shapes.begin())
            note(std::to_string(timed - shapes.begin())
                 + " larger shapes are left out: an oracle in Python would take too long.");
        shapes.erase(shapes.begin(), timed);
        m_arguments = shapes.front().arguments;
        std::vector<Shape> usable;
        for (Shape &shape : shapes) {
            if (shape.arguments == m_arguments)
                usable.push_back(std::move(shape));
        }
        if (usable.size() < shapes.size())
            note(std::to_string(shapes.size() - usable.size())
                 + " shapes are left out: their numbers differ from those of the timed one.");
        const std::size_t count =
            std::min(usable.size(), std::max<std::size_t>(1, std::min<std::size_t>(m_options.shapes, 32)));
        for (std::size_t i = 0; i < count; ++i) {
            // The largest, the smallest, and some between.
            const std::size_t index = count == 1 ? 0 : i * (usable.size() - 1) / (count - 1);
            Case c;
            c.name = i == 0 ? "timed" : "shape-" + std::to_string(i + 1);
            c.axes = usable[index].extents;
            m_workload.cases.push_back(std::move(c));
        }
        if (count < usable.size())
            note(fmt::format("{} of {} shapes are cases; --shapes takes more.", count, usable.size()));
    }

    /// Shapes that nobody knows before, and rows of very different scale.
    void addOwnCases()
    {
        const Case timed = m_workload.cases.front();
        Case hidden;
        hidden.name = "hidden";
        hidden.axes = timed.axes;
        for (const DefinitionAxis &axis : m_definition.axes) {
            const std::string &name = m_axisNames.at(axis.name);
            const auto extent = timed.axes.find(name);
            if (axis.kind != DefinitionAxis::Kind::Variable || extent == timed.axes.end())
                continue;
            hidden.drawn[name] = {1, std::clamp<std::int64_t>(extent->second, 2, mostHidden), 1};
            hidden.axes[name] = 1;
        }
        if (!hidden.drawn.empty() && m_definition.constraints.empty())
            m_workload.cases.push_back(hidden);
        else if (!hidden.drawn.empty())
            note("It has constraints on its axes (" + joined(m_definition.constraints, "; ").substr(0, 300)
                 + "), so no case with drawn shapes was made.");
        Case spread;
        spread.axes = m_workload.cases.size() > 1 && m_workload.cases[1].drawn.empty()
                          ? m_workload.cases[1].axes
                          : timed.axes;
        addSpreadCase(m_workload, std::move(spread), [](const Tensor &) { return true; });
    }

    void addOracle()
    {
        m_workload.oracle = "python";
        workload::PythonOracle &oracle = m_workload.python.emplace();
        oracle.source = m_definition.reference;
        oracle.arrays = arraysOf(m_definition.reference).front();
        oracle.arguments = m_arguments;
        if (oracle.source.size() > workload::maxOracleSourceBytes)
            throw Unsayable{"Its reference is longer than 256 KiB"};
    }

    const Definition &m_definition;
    const std::vector<Binding> &m_bindings;
    const DraftOptions &m_options;
    Workload m_workload;
    std::vector<std::string> m_notes;
    std::map<std::string, std::string> m_axisNames; ///< theirs -> ours
    std::map<std::string, const DefinitionAxis *> m_axes;
    std::vector<std::string> m_arguments;
};

} // namespace

std::string slugOf(const std::string &name)
{
    std::string slug;
    for (const char c : name) {
        const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        const bool kept = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') || lower == '_';
        if (kept)
            slug += lower;
        else if (!slug.empty() && slug.back() != '-')
            slug += '-';
    }
    slug.resize(std::min<std::size_t>(slug.size(), 64));
    while (!slug.empty() && slug.back() == '-')
        slug.pop_back();
    return slug.empty() ? "problem" : slug;
}

std::vector<workload::PythonArrays> arraysOf(const std::string &source)
{
    using workload::PythonArrays;
    std::string imports; // a comment may speak of either
    for (std::size_t at = 0; at < source.size();) {
        const std::size_t end = std::min(source.find('\n', at), source.size());
        const std::size_t begin = std::min(source.find_first_not_of(" \t", at), end);
        const std::string line = source.substr(begin, end - begin);
        if (line.starts_with("import ") || line.starts_with("from "))
            imports += line.substr(0, line.find('#')) + '\n';
        at = end + 1;
    }
    if (hasWord(imports, "torch"))
        return {PythonArrays::Torch};
    if (hasWord(imports, "numpy"))
        return {PythonArrays::Numpy};
    return {PythonArrays::Torch, PythonArrays::Numpy, PythonArrays::Lists};
}

void addSpreadCase(Workload &workload, Case spread, bool (*takes)(const Tensor &))
{
    spread.name = "spread";
    for (const Tensor &tensor : workload.tensors) {
        if (tensor.role != Role::Input || !takes(tensor))
            continue;
        Distribution mixed;
        mixed.kind = DistributionKind::Mixed;
        mixed.spread = 1;
        spread.distributions[tensor.name] = mixed;
    }
    if (!spread.distributions.empty())
        workload.cases.push_back(std::move(spread));
}

Status countWork(Workload &workload)
{
    std::string bytes, elements;
    for (const Tensor &tensor : workload.tensors) {
        std::string product;
        for (const kernel::Expression &extent : tensor.shape)
            product += (product.empty() ? "" : " * ") + extent.text();
        bytes += fmt::format("{}{} * {}", bytes.empty() ? "" : " + ", kernel::sizeOf(tensor.dtype), product);
        if (tensor.role == Role::Output)
            elements += (elements.empty() ? "" : " + ") + product;
    }
    const auto parsedBytes = kernel::Expression::parse(bytes);
    const auto parsedFlops = kernel::Expression::parse(elements);
    if (!parsedBytes || !parsedFlops)
        return fail(ErrorCode::InvalidInput, "Its tensors are too many for one expression of their bytes");
    workload.bytes = *parsedBytes;
    workload.flops = *parsedFlops;
    return {};
}

Result<Draft> draftOf(const Definition &definition, const std::vector<Binding> &bindings,
                      const DraftOptions &options)
{
    try {
        Draft draft = DefinitionDrafter(definition, bindings, options).run();
        // The reader of workload.toml has all limits.
        const auto read =
            workload::parseWorkload(workload::writeWorkload(draft.workload), definition.name.substr(0, 100));
        if (!read)
            return tl::unexpected(read.error());
        return draft;
    } catch (const Unsayable &unsayable) {
        return fail(ErrorCode::InvalidInput, unsayable.why + '.');
    }
}

} // namespace klineage::interop
