// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/problems/definition.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <set>

namespace klineage::interop {

namespace {

using Json = nlohmann::ordered_json; // the order of the inputs is that of the reference's parameters

constexpr std::size_t maxName = 200;
constexpr std::size_t maxText = std::size_t{64} << 10;
constexpr std::size_t maxReference = std::size_t{256} << 10;
constexpr std::size_t maxAxes = 64;
constexpr std::size_t maxTensors = 64;
constexpr std::size_t maxRank = 16;
constexpr std::size_t maxConstraints = 64;
constexpr std::int64_t maxExtent = (std::int64_t{1} << 31) - 1;

/// Thrown where a key is wrong, caught where the text is parsed.
struct Wrong {
    std::string message;
};

const Json &member(const Json &object, const char *key, const std::string &of)
{
    const auto found = object.find(key);
    if (found == object.end())
        throw Wrong{of + " has no '" + key + "'"};
    return *found;
}

std::string textOf(const Json &value, const std::string &what, std::size_t most)
{
    if (!value.is_string())
        throw Wrong{what + " is no text"};
    const auto &text = value.get_ref<const std::string &>();
    if (text.size() > most)
        throw Wrong{what + " is longer than " + std::to_string(most) + " bytes"};
    if (text.find('\0') != std::string::npos)
        throw Wrong{what + " has a character of zero"};
    return text;
}

std::string optionalText(const Json &object, const char *key, const std::string &of, std::size_t most)
{
    const auto found = object.find(key);
    return found == object.end() || found->is_null()
               ? std::string()
               : textOf(*found, "'" + std::string(key) + "' of " + of, most);
}

std::int64_t extentOf(const Json &value, const std::string &what)
{
    if (value.is_number_integer()) {
        const bool tooLarge =
            value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(maxExtent);
        if (!tooLarge && value.get<std::int64_t>() >= 1 && value.get<std::int64_t>() <= maxExtent)
            return value.get<std::int64_t>();
    }
    throw Wrong{what + " is no whole number from 1 to 2^31 - 1"};
}

const Json &objectOf(const Json &value, const std::string &what, std::size_t most)
{
    if (!value.is_object())
        throw Wrong{what + " is no object"};
    if (value.size() > most)
        throw Wrong{what + " has more than " + std::to_string(most) + " entries"};
    return value;
}

std::string shortName(const std::string &name)
{
    if (name.empty() || name.size() > maxName)
        throw Wrong{"a name is empty or longer than 200 bytes"};
    return name;
}

DefinitionAxis axisOf(const std::string &name, const Json &value)
{
    const std::string what = "the axis '" + shortName(name) + "'";
    objectOf(value, what, maxAxes);
    DefinitionAxis axis;
    axis.name = name;
    const std::string type = textOf(member(value, "type", what), "the type of " + what, maxName);
    if (type == "const") {
        axis.kind = DefinitionAxis::Kind::Constant;
        axis.value = extentOf(member(value, "value", what), what);
    } else if (type == "expr") {
        axis.kind = DefinitionAxis::Kind::Expression;
        axis.expression = textOf(member(value, "expression", what), "the expression of " + what, 1000);
    } else if (type != "var") {
        throw Wrong{what + " is of the type '" + type + "', expected const, var or expr"};
    }
    return axis;
}

std::vector<DefinitionTensor> tensorsOf(const Json &root, const char *key)
{
    std::vector<DefinitionTensor> tensors;
    for (const auto &[name, value] :
         objectOf(member(root, key, "the definition"), "'" + std::string(key) + "'", maxTensors).items()) {
        const std::string what = "'" + shortName(name) + "'";
        objectOf(value, what, maxAxes);
        DefinitionTensor tensor;
        tensor.name = name;
        tensor.dtype = textOf(member(value, "dtype", what), "the dtype of " + what, maxName);
        tensor.description = optionalText(value, "description", what, maxText);
        const Json &shape = member(value, "shape", what);
        if (!shape.is_null() && !shape.is_array())
            throw Wrong{"the shape of " + what + " is neither a list of axes nor null"};
        if (shape.is_array()) {
            if (shape.size() > maxRank)
                throw Wrong{"the shape of " + what + " has more than 16 axes"};
            tensor.shape.emplace();
            for (const Json &axis : shape)
                tensor.shape->push_back(textOf(axis, "an axis of " + what, maxName));
        }
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

Definition readDefinition(const Json &root)
{
    objectOf(root, "the definition", 256);
    Definition definition;
    definition.name = textOf(member(root, "name", "the definition"), "'name'", maxName);
    definition.description = optionalText(root, "description", "the definition", maxText);
    definition.reference = optionalText(root, "reference", "the definition", maxReference);
    definition.customInputs = optionalText(root, "custom_inputs_entrypoint", "the definition", maxName);
    for (const auto &[name, value] :
         objectOf(member(root, "axes", "the definition"), "'axes'", maxAxes).items())
        definition.axes.push_back(axisOf(name, value));
    definition.inputs = tensorsOf(root, "inputs");
    definition.outputs = tensorsOf(root, "outputs");
    if (const auto constraints = root.find("constraints");
        constraints != root.end() && !constraints->is_null()) {
        if (!constraints->is_array() || constraints->size() > maxConstraints)
            throw Wrong{"'constraints' is no list of at most 64 texts"};
        for (const Json &constraint : *constraints)
            definition.constraints.push_back(textOf(constraint, "a constraint", maxText));
    }
    static const std::set<std::string> known = {
        "name",    "description", "reference", "custom_inputs_entrypoint",
        "axes",    "inputs",      "outputs",   "constraints",
        "op_type", "tags",        "type"};
    for (const auto &[key, value] : root.items()) {
        if (!known.contains(key))
            definition.unread.push_back(key.substr(0, maxName));
    }
    return definition;
}

InputSource sourceOf(const std::string &name, const Json &value)
{
    const std::string what = "the input '" + shortName(name) + "'";
    objectOf(value, what, maxAxes);
    InputSource source;
    source.type = textOf(member(value, "type", what), "the type of " + what, maxName);
    if (source.type == "scalar") {
        const Json &number = member(value, "value", what);
        if (!number.is_number() && !number.is_boolean())
            throw Wrong{"the value of " + what + " is no number"};
        source.value = number.dump();
    }
    return source;
}

template <typename T, typename Read>
Result<T> parsed(std::string_view text, const std::string &where, const Read &read)
{
    if (text.size() > maxDefinitionBytes)
        return fail(ErrorCode::InvalidInput, where + " is longer than 4 MiB.");
    try {
        return read(Json::parse(text));
    } catch (const Wrong &wrong) {
        return fail(ErrorCode::InvalidInput, where + ": " + wrong.message + ".");
    } catch (const Json::exception &problem) {
        return fail(ErrorCode::InvalidInput,
                    where + " is no JSON: " + std::string(problem.what()).substr(0, 300) + ".");
    }
}

} // namespace

bool looksLikeDefinition(std::string_view text)
{
    if (text.size() > maxDefinitionBytes)
        return false;
    const Json root = Json::parse(text, nullptr, false);
    return root.is_object() && root.contains("axes") && root.contains("inputs") && root.contains("outputs");
}

Result<Definition> parseDefinition(std::string_view text, const std::string &where)
{
    return parsed<Definition>(text, where, readDefinition);
}

Result<Binding> parseBinding(std::string_view line, const std::string &where)
{
    return parsed<Binding>(line, where, [](const Json &root) {
        objectOf(root, "the line", 256);
        Binding binding;
        binding.definition = optionalText(root, "definition", "the line", maxName);
        const Json &workload =
            root.contains("workload") ? objectOf(root.at("workload"), "'workload'", 256) : root;
        binding.uuid = optionalText(workload, "uuid", "the workload", maxName);
        for (const auto &[name, value] :
             objectOf(member(workload, "axes", "the workload"), "'axes'", maxAxes).items())
            binding.axes[shortName(name)] = extentOf(value, "the axis '" + name + "'");
        for (const auto &[name, value] :
             objectOf(member(workload, "inputs", "the workload"), "'inputs'", maxTensors).items())
            binding.inputs[name] = sourceOf(name, value);
        return binding;
    });
}

} // namespace klineage::interop
