// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/mcp/schema.h"

#include "core/base/suggest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace klineage::mcp {

using nlohmann::json;

namespace {

using Problem = std::optional<std::string>;

/// A key of the client's may be long and say anything: only its beginning is repeated.
std::string shortened(const std::string &text)
{
    return text.size() <= 80 ? text : text.substr(0, 80) + "…";
}

bool hasType(const std::string &type, const json &value)
{
    if (type == "integer")
        return value.is_number_integer()
               || (value.is_number_float() && std::isfinite(value.get<double>())
                   && std::abs(value.get<double>()) < 9e15
                   && value.get<double>() == std::floor(value.get<double>()));
    if (type == "number")
        return value.is_number() && std::isfinite(value.get<double>());
    return (type == "object" && value.is_object()) || (type == "array" && value.is_array())
           || (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean());
}

std::string place(const std::string &path)
{
    return path.empty() ? "The argument object" : path;
}

class Checker
{
public:
    Problem check(const json &schema, const json &value, const std::string &path)
    {
        const std::string type = schema.value("type", "object");
        if (!hasType(type, value))
            return place(path) + " is " + value.type_name() + "; " + type + " was expected.";
        if (type == "object")
            return checkObject(schema, value, path);
        if (type == "array")
            return checkArray(schema, value, path);
        return type == "string" ? checkString(schema, value.get_ref<const std::string &>(), path)
                                : checkNumber(schema, value, path);
    }

private:
    Problem checkObject(const json &schema, const json &value, const std::string &path)
    {
        static const json nothing = json::object();
        const json &properties = schema.contains("properties") ? schema.at("properties") : nothing;
        if (value.size() > schema.value("maxProperties", std::size_t{256}))
            return fmt::format("{} has more than {} entries.", place(path),
                               schema.value("maxProperties", std::size_t{256}));
        for (const json &name : schema.value("required", json::array())) {
            if (!value.contains(name.get_ref<const std::string &>()))
                return join(path, name.get<std::string>()) + " is missing.";
        }
        for (const auto &[name, member] : value.items()) {
            const bool known = properties.contains(name);
            if (!known && !schema.value("additionalProperties", json(true)).is_object()) {
                std::vector<std::string> names;
                for (const auto &[other, ignored] : properties.items())
                    names.push_back(other);
                const std::string near = nearestName(name, names);
                return "'" + shortened(name) + "' is no " + (path.empty() ? "argument" : "key of " + path)
                       + (near.empty() ? "." : "; did you mean '" + near + "'?");
            }
            const json &inner = known ? properties.at(name) : schema.at("additionalProperties");
            if (Problem problem = check(inner, member, join(path, shortened(name))))
                return problem;
        }
        return std::nullopt;
    }

    Problem checkArray(const json &schema, const json &value, const std::string &path)
    {
        const std::size_t most = schema.value("maxItems", std::size_t{256});
        if (value.size() > most)
            return fmt::format("{} has more than {} elements.", place(path), most);
        for (std::size_t i = 0; i < value.size(); ++i) {
            if (Problem problem = check(schema.at("items"), value[i], fmt::format("{}[{}]", path, i)))
                return problem;
        }
        return std::nullopt;
    }

    static Problem checkString(const json &schema, const std::string &value, const std::string &path)
    {
        const std::size_t most = schema.value("maxLength", std::size_t{1024});
        if (value.size() > most)
            return fmt::format("{} has more than {} bytes.", path, most);
        if (value.size() < schema.value("minLength", std::size_t{0}))
            return path + " is empty.";
        if (!schema.contains("enum"))
            return std::nullopt;
        std::vector<std::string> words;
        for (const json &word : schema.at("enum"))
            words.push_back(word.get<std::string>());
        if (std::find(words.begin(), words.end(), value) != words.end())
            return std::nullopt;
        return path + " is '" + shortened(value) + "'; expected " + quotedList(words) + '.';
    }

    static Problem checkNumber(const json &schema, const json &value, const std::string &path)
    {
        if (!value.is_number())
            return std::nullopt;
        const double number = value.get<double>();
        if ((schema.contains("minimum") && number < schema.at("minimum").get<double>())
            || (schema.contains("maximum") && number > schema.at("maximum").get<double>()))
            return path + " is " + value.dump() + "; expected " + schema.value("minimum", json()).dump()
                   + " to " + schema.value("maximum", json()).dump() + '.';
        return std::nullopt;
    }

    static std::string join(const std::string &path, const std::string &name)
    {
        return path.empty() ? name : path + '.' + name;
    }
};

} // namespace

std::optional<std::string> schemaProblem(const json &schema, const json &value)
{
    return Checker().check(schema, value, {});
}

} // namespace klineage::mcp
