// SPDX-License-Identifier: GPL-3.0-or-later
// workload.toml in two passes: the keys are read as they stand, then what only makes sense together is
// checked.
#include "core/base/identifier.h"
#include "core/base/suggest.h"
#include "core/files/atomicfile.h"
#include "core/files/tomlentries.h"
#include "core/files/utf8text.h"
#include "core/kernel/readexpression.h"
#include "core/workload/selections.h"
#include "core/workload/tolerance.h"
#include "core/workload/workloadwords.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace klineage::workload {

namespace {

using files::TomlTable;

constexpr std::size_t maxFileBytes = std::size_t{1} << 20;
constexpr std::size_t maxAxes = 16;
constexpr std::size_t maxTensors = 32;
constexpr std::size_t maxCases = 64;
constexpr std::size_t maxReferences = 16;
constexpr std::size_t maxRank = 8;
constexpr std::size_t maxArguments = 64;
constexpr std::int64_t maxExtent = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t maxInteger = std::int64_t{1} << 53; // every one of them is exact in f64
constexpr double maxSummed = 0x1p24;                       // and in f32
constexpr double maxTensorBytes = 68719476736.0; // 64 GiB: no device holds more in one tensor and its copies

/// A finite number as JSON has them: what both languages read alike.
bool isDecimalNumber(const std::string &text)
{
    if (text.empty() || text.size() > 40 || !nlohmann::json::accept(text))
        return false;
    const nlohmann::json value = nlohmann::json::parse(text);
    return value.is_number() && std::isfinite(value.get<double>());
}

class WorkloadReader
{
public:
    explicit WorkloadReader(const files::TomlDocument &document)
        : m_document(document)
        , m_root(document.root())
    {}

    Workload read()
    {
        readHead();
        for (const TomlTable &table : files::tomlEntries(m_root, "tensor", maxTensors))
            readTensor(table);
        for (const TomlTable &table : files::tomlEntries(m_root, "case", maxCases))
            readCase(table);
        readOracle();
        readTolerance();
        for (const TomlTable &table : files::tomlEntries(m_root, "reference", maxReferences))
            readReference(table);
        // Checks of the whole need sound parts: after a problem they would only repeat it.
        if (m_document.ok())
            checkTensors();
        if (m_document.ok())
            checkCases();
        return std::move(m_workload);
    }

private:
    void readHead()
    {
        m_workload.name = m_root.string("name");
        if (m_root.has("name") && !isSlug(m_workload.name))
            m_root.fail("name", "'name' is '" + m_workload.name
                                    + "'; expected lower-case letters, digits, '_' and '-', at most 64.");
        m_workload.title = m_root.string("title", m_workload.name);
        m_workload.description = m_root.string("description", "");
        m_root.require("axes");
        m_workload.axes = m_root.strings("axes");
        if (m_workload.axes.size() > maxAxes)
            m_root.fail("axes", "'axes' has more than " + std::to_string(maxAxes) + " entries.");
        std::set<std::string> seen;
        for (const std::string &axis : m_workload.axes) {
            if (!isIdentifier(axis))
                m_root.fail("axes", "the axis '" + axis + "' is no C identifier of at most 64 characters.");
            else if (!seen.insert(axis).second)
                m_root.fail("axes", "the axis '" + axis + "' is there twice.");
        }
        m_workload.flops = kernel::readExpression(m_root, "flops");
        m_workload.fewestFlops = kernel::readOptionalExpression(m_root, "least_flops");
        m_workload.bytes = kernel::readExpression(m_root, "bytes");
        m_root.require("tensor");
        m_root.require("case");
    }

    void readTensor(const TomlTable &table)
    {
        Tensor tensor;
        tensor.name = table.string("name");
        if (table.has("name") && !isIdentifier(tensor.name))
            table.fail("name",
                       "'name' is '" + tensor.name + "'; expected a C identifier of at most 64 characters.");
        else if (m_workload.findTensor(tensor.name) || isAxis(tensor.name))
            table.fail("name",
                       "the name '" + tensor.name + "' is used twice; axes and tensors share one space.");
        tensor.role = table.choice("role", roleWords);
        tensor.dtype = kernel::readDType(table, "dtype");
        tensor.shape = kernel::readExpressions(table, "shape", 1, maxRank);
        tensor.description = table.string("description", "");
        if (const std::optional<TomlTable> distribution = table.table("distribution")) {
            tensor.distribution = readDistribution(*distribution);
            if (tensor.role == Role::Output)
                table.fail("distribution",
                           "'" + tensor.name + "' is an output; only inputs have a distribution.");
        }
        m_tensorTables.push_back(table);
        m_workload.tensors.push_back(std::move(tensor));
    }

    Distribution readDistribution(const TomlTable &table) const
    {
        Distribution distribution;
        distribution.kind = table.choice("kind", distributionWords);
        switch (distribution.kind) {
        case DistributionKind::Bits:
            return distribution;
        case DistributionKind::Uniform:
            distribution.low = table.number("low", distribution.low);
            distribution.high = table.number("high", distribution.high);
            if (distribution.low >= distribution.high)
                table.fail(table.position(), "'low' is not below 'high'.");
            return distribution;
        case DistributionKind::Large:
            distribution.scale = positive(table, "scale", distribution.scale);
            break;
        case DistributionKind::NegInfinity:
            distribution.fraction = positive(table, "fraction", distribution.fraction);
            if (distribution.fraction >= 1)
                table.fail("fraction", "'fraction' is not below 1.");
            break;
        case DistributionKind::Integers:
            readIntegers(table, distribution);
            return distribution;
        case DistributionKind::Offsets:
            distribution.end = table.string("end");
            distribution.even = table.boolean("even", false);
            if (table.has("end") && !isAxis(distribution.end))
                table.fail("end", "'" + distribution.end + "' is no axis of the workload"
                                      + orListed(distribution.end, m_workload.axes));
            return distribution;
        case DistributionKind::UnitRows:
            distribution.epsilon = positive(table, "epsilon", distribution.epsilon);
            break;
        case DistributionKind::Mixed:
            readMixed(table, distribution);
            break;
        case DistributionKind::LogGates:
            distribution.share = positive(table, "share", distribution.share);
            distribution.divisor = positive(table, "divisor", distribution.divisor);
            if (distribution.share > 1)
                table.fail("share", "'share' is above 1.");
            break;
        case DistributionKind::Sigmoid:
        case DistributionKind::Normal:
            break;
        }
        distribution.mean = table.number("mean", distribution.mean);
        distribution.stddev = positive(table, "stddev", distribution.stddev);
        return distribution;
    }

    static void readMixed(const TomlTable &table, Distribution &distribution)
    {
        distribution.spread = notNegative(table, "spread", distribution.spread);
        distribution.outliers = notNegative(table, "outliers", distribution.outliers);
        distribution.scale = positive(table, "scale", distribution.scale);
        distribution.tails = notNegative(table, "tails", distribution.tails);
        if (distribution.spread > 16)
            table.fail("spread", "'spread' is above 16.");
        if (distribution.outliers > 0.25)
            table.fail("outliers", "'outliers' is more than 0.25.");
        if (distribution.tails > 1)
            table.fail("tails", "'tails' is above 1.");
    }

    static void readIntegers(const TomlTable &table, Distribution &distribution)
    {
        const std::int64_t low = table.integer("low");
        const std::int64_t high = table.integer("high");
        distribution.low = static_cast<double>(low);
        distribution.high = static_cast<double>(high);
        if (low < -maxInteger || high > maxInteger)
            table.fail(table.position(), "'low' and 'high' are not within -2^53 to 2^53.");
        else if (table.has("low") && table.has("high") && low >= high)
            table.fail(table.position(), "'low' is not below 'high'.");
    }

    static double positive(const TomlTable &table, const char *key, double absent)
    {
        const double value = table.number(key, absent);
        if (value <= 0)
            table.fail(key, "'" + std::string(key) + "' is not positive.");
        return value;
    }

    static double notNegative(const TomlTable &table, const char *key, double absent)
    {
        const double value = table.number(key, absent);
        if (value < 0)
            table.fail(key, "'" + std::string(key) + "' is negative.");
        return value;
    }

    void readCase(const TomlTable &table)
    {
        Case c;
        c.name = table.string("name");
        if (table.has("name") && !isSlug(c.name))
            table.fail("name", "'name' is '" + c.name
                                   + "'; expected lower-case letters, digits, '_' and '-', at most 64.");
        else if (m_workload.findCase(c.name))
            table.fail("name", "the case '" + c.name + "' is there twice.");
        if (!table.has("drawn"))
            table.require("axes");
        c.axes = table.integerMap("axes");
        for (const auto &[axis, extent] : c.axes) {
            if (!isAxis(axis))
                table.fail("axes",
                           "'" + axis + "' is no axis of the workload" + orListed(axis, m_workload.axes));
            else if (extent < 1 || extent > maxExtent)
                table.fail("axes", "the axis '" + axis + "' is " + std::to_string(extent)
                                       + "; expected 1 to 2^31 - 1.");
        }
        readDrawn(table, c);
        for (const std::string &axis : m_workload.axes) {
            if ((table.has("axes") || table.has("drawn")) && !c.axes.contains(axis))
                table.fail(table.has("axes") ? "axes" : "drawn",
                           "the axis '" + axis + "' has no value in case '" + c.name + "'.");
        }
        for (const auto &[name, distribution] : table.namedTables("distributions")) {
            const Tensor *tensor = m_workload.findTensor(name);
            if (!tensor || tensor->role != Role::Input)
                table.fail(distribution.position(),
                           "'" + name + "' is no input of the workload" + orListed(name, inputNames()));
            c.distributions[name] = readDistribution(distribution);
        }
        c.exact = table.boolean("exact", false);
        m_caseTables.push_back(table);
        m_workload.cases.push_back(std::move(c));
    }

    /// Axes whose values are drawn for each trial.
    void readDrawn(const TomlTable &table, Case &c) const
    {
        for (const auto &[axis, range] : table.namedTables("drawn")) {
            AxisRange values;
            values.low = range.integer("from");
            values.high = range.integer("to");
            values.step = range.integer("step", 1);
            if (!isAxis(axis))
                range.fail(range.position(),
                           "'" + axis + "' is no axis of the workload" + orListed(axis, m_workload.axes));
            else if (c.axes.contains(axis))
                range.fail(range.position(), "the axis '" + axis + "' is in 'axes' too.");
            else if (m_workload.cases.empty())
                range.fail(range.position(), "the first case is the timed one; its axes cannot be drawn.");
            else if (!range.has("from") || !range.has("to"))
                ; // said already
            else if (values.low < 1 || values.high > maxExtent || values.low >= values.high)
                range.fail(range.position(), "the range is " + std::to_string(values.low) + " to "
                                                 + std::to_string(values.high)
                                                 + "; expected an ascending one within 1 to 2^31 - 1.");
            else if (values.step < 1 || values.step > values.high - values.low)
                range.fail("step", "'step' is " + std::to_string(values.step)
                                       + "; expected at least 1 and at most the width of the range.");
            c.axes[axis] = values.low;
            c.drawn[axis] = values;
        }
    }

    void readOracle()
    {
        m_root.require("oracle");
        const std::optional<TomlTable> table = m_root.table("oracle");
        if (!table)
            return;
        if (table->choice("provider", oracleProviderWords, OracleProvider::Builtin)
            == OracleProvider::Python) {
            readPythonOracle(*table);
            return;
        }
        m_workload.oracle = table->string("name");
        m_workload.oracleArgs = readArgs(*table);
    }

    void readPythonOracle(const TomlTable &table)
    {
        m_workload.oracle = "python";
        PythonOracle &oracle = m_workload.python.emplace();
        oracle.function = table.string("function", oracle.function);
        if (!isIdentifier(oracle.function))
            table.fail("function", "'function' is no Python identifier of at most 64 characters.");
        oracle.arrays = table.choice("arrays", arraysWords, oracle.arrays);
        oracle.declared = table.choice("precision", precisionWords, oracle.declared);
        oracle.file = table.string("file", "");
        oracle.source = table.string("source", "");
        if (oracle.source.empty() == oracle.file.empty())
            table.fail(table.position(),
                       "a Python oracle has either a 'file' beside workload.toml, or its 'source'.");
        const bool isName =
            oracle.file.ends_with(".py") && isIdentifier(oracle.file.substr(0, oracle.file.size() - 3));
        if (!oracle.file.empty() && !isName)
            table.fail(
                "file",
                "'file' is not the name of a Python file beside workload.toml, such as \"reference.py\".");
        if (oracle.source.size() > maxOracleSourceBytes)
            table.fail("source", "the source of the oracle is longer than 256 KiB.");
        if (oracle.source.find('\0') != std::string::npos)
            table.fail("source", "the source of the oracle has a byte of zero.");
        const std::vector<files::TomlText> arguments = table.texts("arguments");
        if (arguments.size() > maxArguments)
            table.fail("arguments", "there are more than " + std::to_string(maxArguments) + " arguments.");
        for (const files::TomlText &argument : arguments) {
            if (!isArgument(argument.text))
                table.fail(argument.position,
                           "'" + argument.text.substr(0, 100)
                               + "' is neither an input, nor a number, nor true or false.");
            oracle.arguments.push_back(argument.text);
        }
    }

    bool isArgument(const std::string &text) const
    {
        if (text == "true" || text == "false")
            return true;
        const Tensor *tensor = m_workload.findTensor(text);
        return tensor ? tensor->role == Role::Input : isDecimalNumber(text);
    }

    /// Roles of an oracle or reference: each names a tensor or an axis.
    std::map<std::string, std::string> readArgs(const TomlTable &table) const
    {
        table.require("args");
        std::map<std::string, std::string> args = table.stringMap("args");
        std::vector<std::string> known = m_workload.axes;
        for (const Tensor &tensor : m_workload.tensors)
            known.push_back(tensor.name);
        for (const auto &[role, name] : args) {
            if (std::find(known.begin(), known.end(), name) == known.end())
                table.fail("args", "'" + name + "' (for '" + role + "') is neither a tensor nor an axis"
                                       + orListed(name, known));
        }
        return args;
    }

    void readTolerance()
    {
        const auto &tensors = m_workload.tensors;
        const bool hasOutput = std::any_of(tensors.begin(), tensors.end(),
                                           [](const Tensor &tensor) { return tensor.role == Role::Output; });
        const Tolerance classLimits = widestTolerance(tensors); // when nothing else is said
        Tolerance limits = classLimits;
        if (const std::optional<TomlTable> table = m_root.table("tolerance")) {
            limits.relL2 = notNegative(*table, "rel_l2", limits.relL2);
            limits.rtol = notNegative(*table, "rtol", limits.rtol);
            limits.atol = notNegative(*table, "atol", limits.atol);
            limits.rowSum = notNegative(*table, "row_sum", limits.rowSum);
            limits.reduction = kernel::readOptionalExpression(*table, "reduction");
            limits.reason = table->string("reason", "");
            limits.roundsBetween = table->boolean("rounds_between", false);
            const bool looser = limits.relL2 > classLimits.relL2 || limits.rtol > classLimits.rtol
                                || limits.atol > classLimits.atol;
            if (hasOutput && looser && limits.reason.empty())
                table->fail(table->position(),
                            "the limits are looser than those of the outputs' type; expected a 'reason'.");
        }
        m_workload.tolerance = std::move(limits);
    }

    void readReference(const TomlTable &table)
    {
        Reference reference;
        reference.device = table.choice("surface", kernel::deviceWords());
        const kernel::DeviceKind home = table.choice("provider", providerWords);
        reference.provider = table.string("provider", "");
        if (m_document.ok() && home != reference.device)
            table.fail("provider", "'" + reference.provider + "' runs on the surface '" + toString(home)
                                       + "', not on '" + toString(reference.device) + "'.");
        reference.op = table.string("op");
        reference.args = readArgs(table);
        m_workload.references.push_back(std::move(reference));
    }

    void checkTensors() const
    {
        for (const auto &[role, word] :
             {std::pair{Role::Input, "input"}, std::pair{Role::Output, "output"}}) {
            const bool there =
                std::any_of(m_workload.tensors.begin(), m_workload.tensors.end(),
                            [wanted = role](const Tensor &tensor) { return tensor.role == wanted; });
            if (!there)
                m_root.fail("tensor", "there is no tensor with the role '" + std::string(word)
                                          + "'; expected at least one.");
        }
        for (std::size_t i = 0; i < m_workload.tensors.size(); ++i) {
            for (const kernel::Expression &extent : m_workload.tensors[i].shape)
                checkNames(m_tensorTables[i], "shape", extent);
        }
        checkNames(m_root, "flops", m_workload.flops);
        if (m_workload.fewestFlops)
            checkNames(m_root, "least_flops", *m_workload.fewestFlops);
        checkNames(m_root, "bytes", m_workload.bytes);
        if (m_workload.tolerance.reduction)
            checkNames(*m_root.table("tolerance"), "reduction", *m_workload.tolerance.reduction);
        if (m_workload.cases.empty())
            m_root.fail("case", "there is no case; expected at least one, the timed one first.");
        checkIntegers();
    }

    /// Of what is added up; selections and functions take them as they are.
    void checkIntegers() const
    {
        if (m_workload.oracle == "python"
            || std::find(selections.begin(), selections.end(), m_workload.oracle) != selections.end())
            return;
        const auto isTooLarge = [](const Distribution &d) {
            return d.kind == DistributionKind::Integers && (d.low < -maxSummed || d.high > maxSummed);
        };
        bool tooLarge = std::any_of(m_workload.tensors.begin(), m_workload.tensors.end(),
                                    [&](const Tensor &tensor) { return isTooLarge(tensor.distribution); });
        for (const Case &c : m_workload.cases)
            tooLarge = tooLarge
                       || std::any_of(c.distributions.begin(), c.distributions.end(),
                                      [&](const auto &entry) { return isTooLarge(entry.second); });
        if (tooLarge)
            m_root.fail(
                "oracle",
                "integers of what is added up are within -2^24 to 2^24; selections and Python oracles have more.");
    }

    void checkNames(const TomlTable &table, const char *key, const kernel::Expression &expression) const
    {
        for (const std::string &name : expression.names()) {
            if (!isAxis(name))
                table.fail(key, "'" + name + "' in '" + expression.text() + "' is no axis of the workload"
                                    + orListed(name, m_workload.axes));
        }
    }

    void checkCases() const
    {
        for (std::size_t i = 0; i < m_workload.cases.size(); ++i) {
            const Case &c = m_workload.cases[i];
            checkCase(m_caseTables[i], c);
            if (c.drawn.empty() || !m_document.ok())
                continue;
            // What holds for the smallest and the largest shape is taken to hold between them.
            Case largest = c;
            for (const auto &[axis, range] : c.drawn)
                largest.axes[axis] = range.low + (range.count() - 1) * range.step;
            checkCase(m_caseTables[i], largest);
        }
    }

    void checkCase(const TomlTable &table, const Case &c) const
    {
        const Result<std::vector<kernel::ResolvedBuffer>> buffers = m_workload.buffersOf(c);
        if (!buffers) {
            table.fail(table.position(), buffers.error().message);
            return;
        }
        for (const kernel::ResolvedBuffer &buffer : *buffers) {
            checkSize(table, c, buffer);
            checkOffsets(table, c, buffer);
        }
        std::vector<std::pair<const char *, const kernel::Expression *>> costs = {
            {"flops", &m_workload.flops}, {"bytes", &m_workload.bytes}};
        if (m_workload.fewestFlops)
            costs.emplace_back("least_flops", &*m_workload.fewestFlops);
        for (const auto &[what, expression] : costs) {
            const Result<double> value = expression->evaluateReal(m_workload.bindings(c));
            if (!value)
                table.fail(table.position(),
                           std::string(what) + " in case '" + c.name + "', " + value.error().message);
            else if (*value <= 0)
                table.fail(table.position(),
                           std::string(what) + " in case '" + c.name + "' is not positive.");
        }
        const kernel::Bindings bindings = m_workload.bindings(c);
        if (m_workload.leastFlops().evaluateReal(bindings).value_or(0)
            > m_workload.flops.evaluateReal(bindings).value_or(0))
            table.fail(table.position(), "least_flops in case '" + c.name + "' is more than flops.");
        if (const Result<Tolerance> limits = m_workload.toleranceFor(c); !limits)
            table.fail(table.position(), limits.error().message);
    }

    static void checkSize(const TomlTable &table, const Case &c, const kernel::ResolvedBuffer &buffer)
    {
        double bytes = static_cast<double>(kernel::sizeOf(buffer.dtype));
        for (const std::int64_t extent : buffer.shape)
            bytes *= static_cast<double>(extent);
        if (bytes > maxTensorBytes)
            table.fail(table.position(),
                       "'" + buffer.name + "' is larger than 64 GiB in case '" + c.name + "'.");
    }

    /// Offsets need integers, one dimension, and room for steps of at least 1.
    void checkOffsets(const TomlTable &table, const Case &c, const kernel::ResolvedBuffer &buffer) const
    {
        const Tensor &tensor = *m_workload.findTensor(buffer.name);
        const Distribution &distribution = m_workload.distributionOf(tensor, c);
        if (tensor.role != Role::Input || distribution.kind != DistributionKind::Offsets)
            return;
        const bool fits = (buffer.dtype == kernel::DType::I32 || buffer.dtype == kernel::DType::I64)
                          && buffer.shape.size() == 1 && buffer.shape[0] >= 2
                          && buffer.shape[0] - 1 <= c.axes.at(distribution.end);
        if (!fits)
            table.fail(table.position(),
                       "'" + buffer.name + "' cannot hold offsets in case '" + c.name
                           + "'; expected i32 or i64, one dimension of at least 2, and no more steps than '"
                           + distribution.end + "'.");
    }

    bool isAxis(const std::string &name) const
    {
        return std::find(m_workload.axes.begin(), m_workload.axes.end(), name) != m_workload.axes.end();
    }

    std::vector<std::string> inputNames() const
    {
        std::vector<std::string> names;
        for (const Tensor &tensor : m_workload.tensors) {
            if (tensor.role == Role::Input)
                names.push_back(tensor.name);
        }
        return names;
    }

    static std::string orListed(const std::string &name, const std::vector<std::string> &known)
    {
        const std::string hint = didYouMean(name, known);
        if (!hint.empty())
            return hint;
        return known.empty() ? "." : "; expected " + quotedList(known) + '.';
    }

    const files::TomlDocument &m_document;
    TomlTable m_root;
    Workload m_workload;
    std::vector<TomlTable> m_tensorTables;
    std::vector<TomlTable> m_caseTables;
};

} // namespace

Result<Workload> parseWorkload(std::string_view text, const std::string &fileName)
{
    const Result<files::TomlDocument> document = files::TomlDocument::parse(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    Workload workload = WorkloadReader(*document).read();
    if (Status status = document->finish(); !status)
        return tl::unexpected(status.error());
    return workload;
}

Result<Workload> readWorkload(const std::filesystem::path &directory)
{
    const std::filesystem::path path = directory / "workload.toml";
    const Result<std::string> text = files::readFile(path, maxFileBytes);
    if (!text)
        return tl::unexpected(text.error());
    Result<Workload> workload = parseWorkload(*text, path.string());
    if (!workload)
        return workload;
    workload->directory = directory;
    if (workload->python && workload->python->source.empty()) {
        Result<std::string> source =
            files::readFile(directory / workload->python->file, maxOracleSourceBytes);
        if (!source)
            return tl::unexpected(source.error());
        if (source->empty() || !files::isUtf8Text(*source))
            return fail(ErrorCode::InvalidInput,
                        "'" + (directory / workload->python->file).string() + "' is empty, or no text.");
        workload->python->source = std::move(*source);
    }
    return workload;
}

} // namespace klineage::workload
