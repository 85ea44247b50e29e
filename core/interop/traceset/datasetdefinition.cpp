// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/traceset/datasetdefinition.h"

#include "core/base/listtext.h"
#include "core/files/sha256.h"
#include "core/interop/traceset/offsetsfile.h"
#include "core/interop/traceset/operatortext.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

namespace klineage::interop {

namespace {

using files::OrderedJson;
using workload::Case;
using workload::Role;
using workload::Tensor;
using workload::Workload;

class DefinitionWriter
{
public:
    explicit DefinitionWriter(const Workload &workload)
        : m_workload(workload)
    {
        for (const std::string &axis : workload.axes)
            m_taken.insert(axis);
        for (const Tensor &tensor : workload.tensors)
            m_taken.insert(tensor.name);
    }

    Result<DatasetDefinition> write()
    {
        const Result<std::string> reference = referenceText(m_workload);
        if (!reference)
            return tl::unexpected(reference.error());
        m_made.name = m_workload.name;
        m_made.opType = m_workload.python ? m_workload.name : m_workload.oracle;
        OrderedJson inputs = OrderedJson::object();
        OrderedJson outputs = OrderedJson::object();
        for (const Role role : {Role::Input, Role::Output}) {
            for (const Tensor &tensor : m_workload.tensors) {
                if (tensor.role == role)
                    (role == Role::Input ? inputs : outputs)[tensor.name] = tensorJson(tensor);
            }
        }
        if (const Status settled = settleAxes(); !settled)
            return tl::unexpected(settled.error());

        OrderedJson &json = m_made.json;
        json["name"] = m_made.name;
        json["op_type"] = m_made.opType;
        files::setUnlessEmpty(json, "description",
                              m_workload.description.empty() ? m_workload.title : m_workload.description);
        json["axes"] = axesJson();
        json["inputs"] = std::move(inputs);
        json["outputs"] = std::move(outputs);
        if (const OrderedJson tied = constraints(); !tied.empty())
            json["constraints"] = tied;
        json["reference"] = *reference;
        sayWhatIsLost();
        return std::move(m_made);
    }

private:
    OrderedJson tensorJson(const Tensor &tensor)
    {
        OrderedJson shape = OrderedJson::array();
        for (std::size_t i = 0; i < tensor.shape.size(); ++i)
            shape.push_back(axisOf(tensor, i));
        OrderedJson json;
        json["shape"] = std::move(shape);
        json["dtype"] = datasetDtype(tensor.dtype);
        files::setUnlessEmpty(json, "description", tensor.description);
        return json;
    }

    /// The axis of an extent, made where there is none yet.
    std::string axisOf(const Tensor &tensor, std::size_t dimension)
    {
        const kernel::Expression &extent = tensor.shape[dimension];
        auto known = std::find_if(m_made.axes.begin(), m_made.axes.end(),
                                  [&](const DatasetAxis &axis) { return axis.extent == extent; });
        if (known == m_made.axes.end()) {
            std::string name = extent.text();
            if (std::find(m_workload.axes.begin(), m_workload.axes.end(), name) == m_workload.axes.end()) {
                name = fmt::format("{}_dim{}", tensor.name, dimension);
                while (!m_taken.insert(name).second)
                    name += '_';
            }
            known = m_made.axes.insert(m_made.axes.end(), DatasetAxis{name, extent, std::nullopt});
        }
        if (tensor.role == Role::Input)
            m_bound.insert(known->name);
        return known->name;
    }

    bool varies(const DatasetAxis &axis, std::int64_t timed) const
    {
        return std::any_of(m_workload.cases.begin(), m_workload.cases.end(), [&](const Case &c) {
            const std::set<std::string> names = axis.extent.names();
            const bool drawn = std::any_of(names.begin(), names.end(),
                                           [&](const std::string &name) { return c.drawn.contains(name); });
            const auto value = axis.extent.evaluateInteger(m_workload.bindings(c));
            return drawn || !value || *value != timed;
        });
    }

    /// Which axes are constant. The value of a variable one comes from the inputs' shapes.
    Status settleAxes()
    {
        for (DatasetAxis &axis : m_made.axes) {
            const auto timed = axis.extent.evaluateInteger(m_workload.bindings(m_workload.cases.front()));
            if (!timed)
                return tl::unexpected(timed.error());
            const bool isBound = m_bound.contains(axis.name);
            const bool isVariable = varies(axis, *timed);
            if (!isBound || !isVariable)
                axis.constant = *timed;
            if (!isBound && isVariable)
                m_made.lost.push_back(fmt::format(
                    "No input has the axis {}, so it is constant there: the definition holds for {} = {}.",
                    axis.name, axis.name, *timed));
        }
        return {};
    }

    OrderedJson axesJson() const
    {
        OrderedJson json = OrderedJson::object();
        for (const DatasetAxis &axis : m_made.axes) {
            OrderedJson &entry = json[axis.name];
            entry["type"] = axis.constant ? "const" : "var";
            if (axis.constant)
                entry["value"] = *axis.constant;
            if (axis.name != axis.extent.text())
                entry["description"] = axis.extent.text();
        }
        return json;
    }

    /// What ties axes to each other, as far as it reads the same in Python and both sides are axes of the definition.
    OrderedJson constraints()
    {
        OrderedJson tied = OrderedJson::array();
        for (const DatasetAxis &axis : m_made.axes) {
            const std::string &text = axis.extent.text();
            if (axis.constant || axis.name == text)
                continue;
            const std::set<std::string> names = axis.extent.names();
            const bool areThere = std::all_of(names.begin(), names.end(), [&](const std::string &name) {
                return std::any_of(m_made.axes.begin(), m_made.axes.end(), [&](const DatasetAxis &other) {
                    return other.name == name && other.extent.text() == name;
                });
            });
            // Sums and products of names and numbers mean the same in both.
            const bool isPython = std::all_of(text.begin(), text.end(), [](char ch) {
                return std::isalnum(static_cast<unsigned char>(ch))
                       || std::string_view("_ +-*").find(ch) != std::string_view::npos;
            });
            if (areThere && isPython)
                tied.push_back(axis.name + " == " + text);
            else
                m_made.lost.push_back("That the axis " + axis.name + " is " + text
                                      + (areThere ? "." : ", of axes that no tensor has."));
        }
        return tied;
    }

    void sayWhatIsLost()
    {
        std::vector<std::string> whole;
        std::vector<std::string> narrow;
        for (const Tensor &tensor : m_workload.tensors) {
            if (tensor.role == Role::Input && !kernel::isFloat(tensor.dtype))
                whole.push_back(tensor.name);
            if (tensor.dtype == kernel::DType::TF32)
                narrow.push_back(tensor.name);
        }
        if (!whole.empty())
            m_made.lost.push_back(
                "Which integers " + listed(whole)
                + " may hold: workloads have those that are the same in each trial, as files.");
        if (!narrow.empty())
            m_made.lost.push_back("That " + listed(narrow) + " may be computed with as TF32.");
        if (m_workload.oracle == "topk_rows" || m_workload.oracle == "topk_sorted_rows")
            m_made.lost.push_back("That any of equal elements may be chosen"
                                  + std::string(m_workload.oracle == "topk_rows" ? ", in any order." : "."));
        std::vector<std::string> contents;
        std::size_t drawn = 0;
        for (const Case &c : m_workload.cases) {
            drawn += c.drawn.empty() ? 0U : 1U;
            if (c.drawn.empty() && !c.distributions.empty())
                contents.push_back(c.name);
        }
        if (!contents.empty())
            m_made.lost.push_back(
                contents.size() == 1
                    ? "The contents of the case " + contents.front() + ": it is no workload there."
                    : "The contents of the cases " + listed(contents) + ": they are no workloads there.");
        if (drawn > 0)
            m_made.lost.push_back(fmt::format("Shapes that are drawn for each trial ({} case{}).", drawn,
                                              drawn == 1 ? "" : "s"));
    }

    const Workload &m_workload;
    DatasetDefinition m_made;
    std::set<std::string> m_taken; ///< names of axes and tensors
    std::set<std::string> m_bound; ///< axes that an input has
};

/// 8-4-4-4-12 of a hash: an identifier that is the same wherever the same workload is written (RFC 9562, version 8).
std::string identifierOf(const std::string &text)
{
    std::string digits = files::sha256Hex(text).substr(0, 32);
    digits[12] = '8';
    digits[16] = "89ab"[digits[16] % 4];
    for (const std::size_t at : {20U, 16U, 12U, 8U})
        digits.insert(at, "-");
    return digits;
}

} // namespace

Result<DatasetDefinition> datasetDefinitionOf(const Workload &workload)
{
    return DefinitionWriter(workload).write();
}

Result<DatasetLine> datasetWorkloadOf(const DatasetDefinition &definition, const Workload &workload,
                                      const Case &c)
{
    const kernel::Bindings names = workload.bindings(c);
    OrderedJson axes = OrderedJson::object();
    for (const DatasetAxis &axis : definition.axes) {
        const auto value = axis.extent.evaluateInteger(names);
        if (!value || *value < 1 || (axis.constant && *axis.constant != *value))
            return fail(ErrorCode::InvalidInput,
                        "the definition's constants do not hold in the shape that decided them");
        if (!axis.constant)
            axes[axis.name] = *value;
    }
    const Result<OffsetTensors> integers = fixedIntegers(workload, c);
    if (!integers)
        return fail(ErrorCode::InvalidInput, "the format cannot say the integers of '"
                                                 + integers.error().message
                                                 + "' that decided them, and would have random ones");
    DatasetLine line;
    const std::string uuid = identifierOf(definition.name + '\n' + c.name + '\n' + axes.dump());
    if (!integers->empty())
        line.files.push_back(
            {"blob/workloads/" + definition.opType + '/' + definition.name + '/' + uuid + ".safetensors",
             safetensorsText(workload, *integers)});
    OrderedJson inputs = OrderedJson::object();
    for (const Tensor &tensor : workload.tensors) {
        if (tensor.role != Role::Input)
            continue;
        if (integers->contains(tensor.name))
            inputs[tensor.name] = {
                {"type", "safetensors"}, {"path", line.files.front().path}, {"tensor_key", tensor.name}};
        else
            inputs[tensor.name]["type"] = "random";
    }
    line.json["uuid"] = uuid;
    line.json["axes"] = std::move(axes);
    line.json["inputs"] = std::move(inputs);
    return line;
}

} // namespace klineage::interop
