// SPDX-License-Identifier: GPL-3.0-or-later
//
// What files of FlashInfer Trace have, after the public models of flashinfer-bench 0.1.2, in as much of JSON Schema as that takes.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace klineage::tests {

using nlohmann::json;

/// Of JSON Schema: type, enum, const, required, properties (nothing else is allowed), additionalProperties, items, minItems, minLength, minimum.
inline constexpr const char *schemaText = R"json({
  "definition": {"type": "object", "required": ["name", "op_type", "axes", "inputs", "outputs", "reference"], "properties": {
    "name": {"type": "string", "minLength": 1}, "op_type": {"type": "string", "minLength": 1},
    "description": {"type": "string"}, "reference": {"type": "string", "minLength": 1},
    "constraints": {"type": "array", "items": {"type": "string", "minLength": 1}},
    "axes": {"type": "object", "additionalProperties": {"type": "object", "required": ["type"], "properties": {
      "type": {"enum": ["const", "var"]}, "value": {"type": "integer", "minimum": 1}, "description": {"type": "string"}}}},
    "inputs": {"type": "object", "additionalProperties": "tensor"},
    "outputs": {"type": "object", "additionalProperties": "tensor"}}},
  "tensor": {"type": "object", "required": ["shape", "dtype"], "properties": {
    "shape": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}, "description": {"type": "string"},
    "dtype": {"enum": ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1", "int64", "int32", "int16", "int8", "bool"]}}},
  "solution": {"type": "object", "required": ["name", "definition", "author", "spec", "sources"], "properties": {
    "name": {"type": "string", "minLength": 1}, "definition": {"type": "string", "minLength": 1},
    "author": {"type": "string", "minLength": 1}, "description": {"type": "string"},
    "spec": {"type": "object", "required": ["language", "target_hardware", "entry_point"], "properties": {
      "language": {"enum": ["python", "triton", "cpp", "cuda", "tilelang"]},
      "target_hardware": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
      "entry_point": {"type": "string", "minLength": 1}, "destination_passing_style": {"type": "boolean"},
      "dependencies": {"type": "array", "items": {"type": "string"}}, "binding": {"enum": ["tvm-ffi", "torch"]}}},
    "sources": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["path", "content"], "properties": {
      "path": {"type": "string", "minLength": 1}, "content": {"type": "string", "minLength": 1}}}}}},
  "workload": {"type": "object", "required": ["axes", "inputs", "uuid"], "properties": {
    "uuid": {"type": "string", "minLength": 36}, "axes": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
    "inputs": {"type": "object", "additionalProperties": {"type": "object", "required": ["type"], "properties": {
      "type": {"enum": ["random", "safetensors"]}, "path": {"type": "string", "minLength": 1}, "tensor_key": {"type": "string", "minLength": 1}}}}}},
  "bare": {"type": "object", "required": ["definition", "workload", "solution", "evaluation"], "properties": {
    "definition": {"type": "string", "minLength": 1}, "workload": "workload", "solution": {"const": null}, "evaluation": {"const": null}}},
  "trace": {"type": "object", "required": ["definition", "workload", "solution", "evaluation"], "properties": {
    "definition": {"type": "string", "minLength": 1}, "workload": "workload", "solution": {"type": "string", "minLength": 1},
    "evaluation": {"type": "object", "required": ["status", "environment", "timestamp", "log"], "properties": {
      "status": {"enum": ["PASSED", "INCORRECT_SHAPE", "INCORRECT_NUMERICAL", "INCORRECT_DTYPE", "RUNTIME_ERROR", "COMPILE_ERROR", "TIMEOUT"]},
      "environment": {"type": "object", "required": ["hardware"], "properties": {"hardware": {"type": "string", "minLength": 1},
        "libs": {"type": "object", "additionalProperties": {"type": "string"}}}},
      "timestamp": {"type": "string", "minLength": 1}, "log": {"type": "string"},
      "correctness": {"type": "object", "properties": {"max_relative_error": {"type": "number", "minimum": 0},
        "max_absolute_error": {"type": "number", "minimum": 0}, "extra": {"type": "object", "additionalProperties": {}}}},
      "performance": {"type": "object", "properties": {"latency_ms": {"type": "number", "minimum": 0},
        "reference_latency_ms": {"type": "number", "minimum": 0}, "speedup_factor": {"type": "number", "minimum": 0}}}}}}}
})json";

/// What is wrong with a value; empty: nothing.
inline std::string problemOf(const json &value, const json &rule, const std::string &at)
{
    static const json schemas = json::parse(schemaText);
    if (rule.is_string())
        return problemOf(value, schemas.at(rule.get<std::string>()), at);
    const std::string type = rule.value("type", "");
    const bool fits = type.empty() || (type == "object" && value.is_object())
                      || (type == "array" && value.is_array()) || (type == "string" && value.is_string())
                      || (type == "integer" && value.is_number_integer())
                      || (type == "number" && value.is_number()) || (type == "boolean" && value.is_boolean());
    if (!fits)
        return at + " is no " + type;
    if (rule.contains("const") && value != rule["const"])
        return at + " is " + value.dump();
    if (rule.contains("enum")
        && std::find(rule["enum"].begin(), rule["enum"].end(), value) == rule["enum"].end())
        return at + " is " + value.dump();
    if (rule.contains("minLength") && value.get<std::string>().size() < rule["minLength"].get<std::size_t>())
        return at + " is too short";
    if (rule.contains("minItems") && value.size() < rule["minItems"].get<std::size_t>())
        return at + " has too few items";
    if (rule.contains("minimum") && value.get<double>() < rule["minimum"].get<double>())
        return at + " is " + value.dump();
    for (const json &key : rule.value("required", json::array())) {
        if (!value.contains(key.get<std::string>()))
            return at + " has no " + key.get<std::string>();
    }
    if (type == "array" && rule.contains("items")) {
        for (const json &item : value) {
            if (const std::string problem = problemOf(item, rule["items"], at + "[]"); !problem.empty())
                return problem;
        }
    }
    if (type != "object")
        return {};
    for (const auto &[key, member] : value.items()) {
        const bool isKnown = rule.contains("properties") && rule["properties"].contains(key);
        if (!isKnown && !rule.contains("additionalProperties"))
            return at + " has the key '" + key + "', which the schema has not";
        const json &next = isKnown ? rule["properties"][key] : rule["additionalProperties"];
        if (const std::string problem = problemOf(member, next, at + "." + key); !problem.empty())
            return problem;
    }
    return {};
}

} // namespace klineage::tests
