// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomlwriter.h"
#include "core/workload/workloadwords.h"

namespace klineage::workload {

namespace {

using files::tomlInlineTable;
using files::tomlNumber;
using files::tomlString;

/// `{ kind = "normal", mean = 0.5 }`: only what the kind has and what is not the default.
std::string distributionText(const Distribution &distribution)
{
    const Distribution absent;
    std::vector<std::pair<std::string, std::string>> fields = {
        {"kind", tomlString(kernel::wordOf(distributionWords, distribution.kind))}};
    const auto add = [&fields](const char *key, double value, double defaultValue) {
        if (value != defaultValue)
            fields.emplace_back(key, tomlNumber(value));
    };
    switch (distribution.kind) {
    case DistributionKind::Bits:
        return tomlInlineTable(fields);
    case DistributionKind::Uniform:
        add("low", distribution.low, absent.low);
        add("high", distribution.high, absent.high);
        return tomlInlineTable(fields);
    case DistributionKind::Integers:
        fields.emplace_back("low", std::to_string(static_cast<std::int64_t>(distribution.low)));
        fields.emplace_back("high", std::to_string(static_cast<std::int64_t>(distribution.high)));
        return tomlInlineTable(fields);
    case DistributionKind::Large:
        add("scale", distribution.scale, absent.scale);
        break;
    case DistributionKind::NegInfinity:
        add("fraction", distribution.fraction, absent.fraction);
        break;
    case DistributionKind::Offsets:
        fields.emplace_back("end", tomlString(distribution.end));
        if (distribution.even)
            fields.emplace_back("even", "true");
        return tomlInlineTable(fields);
    case DistributionKind::UnitRows:
        add("epsilon", distribution.epsilon, absent.epsilon);
        break;
    case DistributionKind::Mixed:
        add("spread", distribution.spread, absent.spread);
        add("outliers", distribution.outliers, absent.outliers);
        add("scale", distribution.scale, absent.scale);
        add("tails", distribution.tails, absent.tails);
        break;
    case DistributionKind::LogGates:
        add("share", distribution.share, absent.share);
        add("divisor", distribution.divisor, absent.divisor);
        break;
    case DistributionKind::Sigmoid:
    case DistributionKind::Normal:
        break;
    }
    add("mean", distribution.mean, absent.mean);
    add("stddev", distribution.stddev, absent.stddev);
    return tomlInlineTable(fields);
}

/// `{ from = 8, to = 256, step = 8 }`.
std::string rangeText(const AxisRange &range)
{
    std::vector<std::pair<std::string, std::string>> fields = {{"from", std::to_string(range.low)},
                                                               {"to", std::to_string(range.high)}};
    if (range.step != 1)
        fields.emplace_back("step", std::to_string(range.step));
    return tomlInlineTable(fields);
}

void writeTensor(files::TomlWriter &writer, const Tensor &tensor)
{
    writer.beginArrayTable("tensor");
    writer.string("name", tensor.name);
    writer.string("role", kernel::wordOf(roleWords, tensor.role));
    writer.string("dtype", toString(tensor.dtype));
    std::vector<std::string> shape;
    for (const kernel::Expression &extent : tensor.shape)
        shape.push_back(extent.text());
    writer.expressions("shape", shape);
    writer.optionalString("description", tensor.description);
    if (tensor.role == Role::Input && tensor.distribution != Distribution())
        writer.written("distribution", distributionText(tensor.distribution));
}

void writeCase(files::TomlWriter &writer, const Workload &workload, const Case &c)
{
    writer.beginArrayTable("case");
    writer.string("name", c.name);
    std::vector<std::pair<std::string, std::string>> axes;
    for (const std::string &axis : workload.axes) {
        if (const auto found = c.axes.find(axis); found != c.axes.end() && !c.drawn.contains(axis))
            axes.emplace_back(axis, std::to_string(found->second));
    }
    if (!axes.empty())
        writer.written("axes", tomlInlineTable(axes));
    std::vector<std::pair<std::string, std::string>> drawn;
    for (const std::string &axis : workload.axes) {
        if (const auto range = c.drawn.find(axis); range != c.drawn.end())
            drawn.emplace_back(axis, rangeText(range->second));
    }
    if (!drawn.empty())
        writer.written("drawn", tomlInlineTable(drawn));
    std::vector<std::pair<std::string, std::string>> distributions;
    for (const auto &[tensor, distribution] : c.distributions)
        distributions.emplace_back(tensor, distributionText(distribution));
    if (!distributions.empty())
        writer.written("distributions", tomlInlineTable(distributions));
    if (c.exact)
        writer.boolean("exact", true);
}

void writeOracle(files::TomlWriter &writer, const Workload &workload)
{
    writer.beginTable("oracle");
    if (!workload.python) {
        writer.string("name", workload.oracle);
        writer.stringMap("args", workload.oracleArgs);
        return;
    }
    const PythonOracle &python = *workload.python;
    writer.string("provider", kernel::wordOf(oracleProviderWords, OracleProvider::Python));
    writer.string("function", python.function);
    writer.string("arrays", kernel::wordOf(arraysWords, python.arrays));
    writer.string("precision", kernel::wordOf(precisionWords, python.declared));
    writer.optionalStrings("arguments", python.arguments);
    if (python.source.empty())
        writer.string("file", python.file);
    else
        writer.string("source", python.source);
}

void writeTolerance(files::TomlWriter &writer, const Tolerance &tolerance)
{
    writer.beginTable("tolerance");
    writer.number("rel_l2", tolerance.relL2);
    writer.number("rtol", tolerance.rtol);
    writer.number("atol", tolerance.atol);
    if (tolerance.reduction)
        writer.expression("reduction", tolerance.reduction->text());
    if (tolerance.rowSum > 0)
        writer.number("row_sum", tolerance.rowSum);
    writer.optionalString("reason", tolerance.reason);
    if (tolerance.roundsBetween)
        writer.boolean("rounds_between", true);
}

} // namespace

std::string writeWorkload(const Workload &workload)
{
    files::TomlWriter writer;
    writer.string("name", workload.name);
    writer.string("title", workload.title);
    writer.optionalString("description", workload.description);
    writer.strings("axes", workload.axes);
    writer.expression("flops", workload.flops.text());
    if (workload.fewestFlops)
        writer.expression("least_flops", workload.fewestFlops->text());
    writer.expression("bytes", workload.bytes.text());
    for (const Tensor &tensor : workload.tensors)
        writeTensor(writer, tensor);
    for (const Case &c : workload.cases)
        writeCase(writer, workload, c);
    writeOracle(writer, workload);
    writeTolerance(writer, workload.tolerance);
    for (const Reference &reference : workload.references) {
        writer.beginArrayTable("reference");
        writer.string("surface", toString(reference.device));
        writer.string("provider", reference.provider);
        writer.string("op", reference.op);
        writer.stringMap("args", reference.args);
    }
    return writer.text();
}

} // namespace klineage::workload
