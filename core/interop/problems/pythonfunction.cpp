// SPDX-License-Identifier: GPL-3.0-or-later
// A function with annotated parameters is a definition that was written in one place: it goes the way of an imported one.
#include "core/interop/problems/pythonfunction.h"

#include "core/base/identifier.h"
#include "core/base/listtext.h"
#include "core/base/suggest.h"
#include "core/gate/oracle/pythonoracle.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace klineage::interop {

namespace {

using nlohmann::json;

constexpr const char *signatureScript =
#include "signaturescript.inc"
    ;

/// The workload's words, and those of numpy and torch.
const std::map<std::string, std::string, std::less<>> theirDtypes = {{"f64", "float64"},
                                                                     {"f32", "float32"},
                                                                     {"f16", "float16"},
                                                                     {"bf16", "bfloat16"},
                                                                     {"f8e4m3", "float8_e4m3fn"},
                                                                     {"f8e5m2", "float8_e5m2"},
                                                                     {"i64", "int64"},
                                                                     {"i32", "int32"},
                                                                     {"i16", "int16"},
                                                                     {"i8", "int8"},
                                                                     {"u32", "uint32"},
                                                                     {"u8", "uint8"}};

std::string stripped(std::string_view text)
{
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos)
        return {};
    return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

std::string wordOfDtype(const std::string &text)
{
    if (theirDtypes.contains(text))
        return text;
    for (const auto &[ours, theirs] : theirDtypes) {
        if (text == theirs || text == "torch." + theirs || text == "np." + theirs
            || text == "numpy." + theirs)
            return ours;
    }
    return {};
}

bool isWhole(const std::string &text)
{
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size() && !text.empty();
}

Error wrong(const std::string &message)
{
    return {ErrorCode::InvalidInput, message, {}};
}

class FunctionReader
{
public:
    FunctionReader(const std::string &name, const std::string &source, const FunctionOptions &options)
        : m_options(options)
    {
        m_definition.name = name;
        m_definition.reference = source;
    }

    Result<Draft> run(const json &said)
    {
        for (Status (FunctionReader::*step)(const json &) :
             {&FunctionReader::checkFunction, &FunctionReader::readOptions, &FunctionReader::readInputs,
              &FunctionReader::readOutputs, &FunctionReader::checkSizes}) {
            if (Status done = (this->*step)(said); !done)
                return tl::unexpected(done.error());
        }
        m_definition.description = said.value("description", std::string());
        DraftOptions options;
        options.values = m_values;
        options.isCounted = true;
        Result<Draft> draft = draftOf(m_definition, {}, options);
        if (!draft)
            return draft;
        draft->workload.python->function = m_options.function;
        if (!m_options.flops.empty()) {
            auto flops = kernel::Expression::parse(m_options.flops);
            if (!flops)
                return tl::unexpected(wrong("--flops: " + flops.error().message));
            draft->workload.flops = std::move(*flops);
            // The reader of workload.toml knows the axes.
            const auto read =
                workload::parseWorkload(workload::writeWorkload(draft->workload), "workload.toml");
            if (!read)
                return tl::unexpected(read.error());
        } else {
            draft->notes.emplace_back(
                "'flops' is one for each element of an output: say --flops, or correct it in workload.toml.");
        }
        return draft;
    }

private:
    Status checkFunction(const json &said)
    {
        if (said.contains("parameters"))
            return {};
        std::vector<std::string> known;
        for (const json &name : said.value("functions", json::array())) {
            if (name.is_string())
                known.push_back(name.get<std::string>().substr(0, 64));
        }
        return tl::unexpected(wrong(noSuchName("function", m_options.function, known)));
    }

    Status readOptions(const json &)
    {
        for (const auto &[list, texts] :
             {std::pair{&m_options.inputs, &m_inputs}, {&m_options.outputs, &m_outputs}}) {
            for (const std::string &text : *list) {
                Result<TensorText> tensor = parseTensorText(text);
                if (!tensor)
                    return tl::unexpected(tensor.error());
                if (tensor->name.empty())
                    return tl::unexpected(wrong("'" + text + "' has no name: say it as in 'x=f32[R, C]'."));
                texts->push_back(std::move(*tensor));
            }
        }
        m_values = m_options.values;
        return {};
    }

    Status readInputs(const json &said)
    {
        for (const json &parameter : said.at("parameters")) {
            const auto name = parameter.at("name").get<std::string>().substr(0, 100);
            if (parameter.at("is_list").get<bool>())
                return tl::unexpected(
                    wrong("The parameter '" + name
                          + "' is not passed by its place, so it cannot be one of an oracle."));
            const auto given = std::find_if(m_inputs.begin(), m_inputs.end(),
                                            [&](const TensorText &t) { return t.name == name; });
            if (given != m_inputs.end()) {
                add(*given, m_definition.inputs);
                m_inputs.erase(given);
            } else if (parameter.at("annotation").is_string()) {
                Result<TensorText> tensor = parseTensorText(parameter.at("annotation").get<std::string>());
                if (!tensor)
                    return tl::unexpected(wrong("The parameter '" + name + "': " + tensor.error().message));
                tensor->name = name;
                add(*tensor, m_definition.inputs);
            } else if (Status number = addNumber(name, parameter); !number) {
                return number;
            }
        }
        if (!m_inputs.empty())
            return tl::unexpected(wrong("The function has no parameter '" + m_inputs.front().name + "'."));
        return {};
    }

    /// A parameter without a shape is a number: --size gives it, or its default.
    Status addNumber(const std::string &name, const json &parameter)
    {
        const json &standard = parameter.at("default");
        const bool isNumber = standard.is_number() || standard.is_boolean();
        if (!m_values.contains(name) && !isNumber)
            return tl::unexpected(wrong("The parameter '" + name
                                        + "' has neither a shape nor a number: annotate it, as in " + name
                                        + ": \"f32[R, C]\", say --input '" + name
                                        + "=f32[R, C]', or give it a number with --size " + name + "=…."));
        m_values.try_emplace(name, standard.dump());
        m_definition.inputs.push_back({name, std::nullopt, "float32", {}});
        return {};
    }

    Status readOutputs(const json &said)
    {
        std::vector<TensorText> outputs = m_outputs;
        const json returns = said.value("returns", json());
        if (outputs.empty()) {
            const json list = returns.is_string()  ? json::array({returns})
                              : returns.is_array() ? returns
                                                   : json::array();
            for (const json &text : list) {
                if (!text.is_string())
                    return tl::unexpected(
                        wrong("What it returns is annotated with something else than a tensor's text."));
                Result<TensorText> tensor = parseTensorText(text.get<std::string>());
                if (!tensor)
                    return tl::unexpected(wrong("What it returns: " + tensor.error().message));
                if (tensor->name.empty())
                    tensor->name = list.size() == 1 ? "y" : "y" + std::to_string(outputs.size());
                outputs.push_back(std::move(*tensor));
            }
        }
        if (outputs.empty())
            return tl::unexpected(wrong("Nothing says the shape of what it returns: annotate it, as in def "
                                        + m_options.function
                                        + "(…) -> \"f32[R, C]\", or say --output 'y=f32[R, C]'."));
        for (const TensorText &output : outputs) {
            const auto &inputs = m_definition.inputs;
            if (std::any_of(inputs.begin(), inputs.end(),
                            [&](const auto &i) { return i.name == output.name; }))
                return tl::unexpected(wrong("An input and an output are both called '" + output.name
                                            + "': name it in the annotation, as in \"out: f32[R, C]\"."));
            add(output, m_definition.outputs);
        }
        return {};
    }

    void add(const TensorText &text, std::vector<DefinitionTensor> &list)
    {
        DefinitionTensor tensor{text.name, std::vector<std::string>(), theirDtypes.at(text.dtype), {}};
        for (const std::string &extent : text.shape)
            tensor.shape->push_back(axisOf(extent));
        list.push_back(std::move(tensor));
    }

    /// The axis that an extent stands for: a name, a number, or an expression over names.
    std::string axisOf(const std::string &extent)
    {
        DefinitionAxis axis;
        axis.name = extent;
        if (isWhole(extent)) {
            axis.name = "D" + extent;
            axis.kind = DefinitionAxis::Kind::Constant;
            std::from_chars(extent.data(), extent.data() + extent.size(), axis.value);
        } else if (!isIdentifier(extent)) {
            axis.kind = DefinitionAxis::Kind::Expression;
            axis.expression = extent;
            if (const auto parsed = kernel::Expression::parse(extent)) {
                for (const std::string &name : parsed->names())
                    axisOf(name);
            }
        }
        const bool isKnown = std::any_of(m_definition.axes.begin(), m_definition.axes.end(),
                                         [&](const DefinitionAxis &a) { return a.name == axis.name; });
        if (!isKnown)
            m_definition.axes.push_back(axis);
        return axis.name;
    }

    Status checkSizes(const json &)
    {
        std::vector<std::string> missing;
        for (const DefinitionAxis &axis : m_definition.axes) {
            if (axis.kind == DefinitionAxis::Kind::Variable && !m_values.contains(axis.name))
                missing.push_back(axis.name);
        }
        if (!missing.empty())
            return tl::unexpected(
                wrong("Say how large " + listed(missing) + (missing.size() == 1 ? " is" : " are")
                      + " where it is timed: --size " + joined(missing, "=… --size ") + "=…."));
        return {};
    }

    const FunctionOptions &m_options;
    Definition m_definition;
    std::vector<TensorText> m_inputs;
    std::vector<TensorText> m_outputs;
    std::map<std::string, std::string> m_values;
};

} // namespace

Result<TensorText> parseTensorText(std::string_view whole)
{
    const std::string shownText = "'" + std::string(whole.substr(0, 100)) + "'";
    const auto bad = [&](const std::string &why) {
        return tl::unexpected(wrong(shownText + " is no tensor: " + why + ", as in f32[R, C]."));
    };
    TensorText tensor;
    std::string_view text = whole;
    const std::size_t open = text.find('[');
    const std::size_t sign = text.substr(0, open).find_first_of(":=");
    if (sign != std::string_view::npos) {
        tensor.name = stripped(text.substr(0, sign));
        if (!isIdentifier(tensor.name))
            return bad("'" + tensor.name.substr(0, 64) + "' is no name");
        text = text.substr(sign + 1);
    }
    const std::string rest = stripped(text);
    const std::size_t bracket = rest.find('[');
    if (bracket == std::string::npos || !rest.ends_with(']'))
        return bad("expected a type and a shape in brackets");
    tensor.dtype = wordOfDtype(stripped(std::string_view(rest).substr(0, bracket)));
    if (tensor.dtype.empty())
        return bad("'" + stripped(std::string_view(rest).substr(0, bracket)).substr(0, 64)
                   + "' is no type that workloads have");
    std::string_view shape = std::string_view(rest).substr(bracket + 1, rest.size() - bracket - 2);
    while (!shape.empty()) {
        const std::size_t comma = std::min(shape.find(','), shape.size());
        tensor.shape.push_back(stripped(shape.substr(0, comma)));
        if (tensor.shape.back().empty())
            return bad("an extent is missing");
        shape = shape.substr(std::min(comma + 1, shape.size()));
    }
    if (tensor.shape.empty() || tensor.shape.size() > 8)
        return bad("tensors have 1 to 8 dimensions");
    return tensor;
}

Result<Draft> draftOfSignature(const std::string &name, const std::string &source,
                               const std::string &signature, const FunctionOptions &options)
{
    try {
        return FunctionReader(name, source, options).run(json::parse(signature));
    } catch (const json::exception &) {
        return tl::unexpected(wrong("What the source says of its function cannot be read."));
    }
}

Result<Draft> draftOfFunction(const std::string &name, const std::string &source,
                              const FunctionOptions &options, const std::stop_token &stop)
{
    if (!isIdentifier(options.function))
        return tl::unexpected(wrong("'" + options.function.substr(0, 64) + "' is no name of a function."));
    std::optional<Error> last; // of lists, which need no package: what it says is of the source
    for (const workload::PythonArrays arrays : arraysOf(source)) {
        workload::PythonOracle oracle;
        oracle.source = source + "\n\nKLINEAGE_FUNCTION = \"" + options.function + "\"\n" + signatureScript;
        oracle.function = "klineage_signature"; // whether the one that is asked for is there is told below
        oracle.arrays = arrays;
        auto process = gate::OracleProcess::start(oracle, stop);
        if (!process) {
            last = process.error();
            continue;
        }
        const auto said = (*process)->tell("klineage_signature", stop);
        if (!said)
            return tl::unexpected(said.error());
        return draftOfSignature(name, source, said->dump(-1, ' ', false, json::error_handler_t::replace),
                                options);
    }
    return tl::unexpected(*last);
}

} // namespace klineage::interop
