// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/outline/parameters.h"

#include <algorithm>

namespace klineage::kernel {

namespace {

constexpr int mostAliases = 8;

bool isAnyOf(std::string_view word, std::initializer_list<std::string_view> words)
{
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// Says something about a type, but is none.
bool isQualifier(std::string_view word)
{
    return isAnyOf(word, {"const",      "volatile",  "restrict",  "__restrict__", "__restrict",
                          "__global",   "global",    "__local",   "local",        "__constant",
                          "constant",   "__private", "private",   "__read_only",  "__grid_constant__",
                          "struct",     "register",  "read_only", "write_only",   "read_write",
                          "__global__", "std",       "cuda"});
}

bool isTypeWord(std::string_view word)
{
    return isAnyOf(word, {"void", "bool", "char", "short", "int", "long", "float", "double", "half", "signed",
                          "unsigned"});
}

/// "int4" → "int": vectors are bound like their elements.
std::string_view scalarOfVector(std::string_view word)
{
    const std::string_view stem = word.substr(0, word.find_last_not_of("0123456789") + 1);
    const std::string_view width = word.substr(stem.size());
    const bool isVector = isAnyOf(width, {"2", "3", "4", "8", "16"})
                          && isAnyOf(stem, {"char", "uchar", "short", "ushort", "int", "uint", "long",
                                            "ulong", "longlong", "ulonglong", "float", "double", "half"});
    return isVector ? stem : word;
}

std::optional<DType> namedElement(std::string_view word)
{
    static const std::map<std::string_view, DType> names = {{"half", DType::F16},
                                                            {"__half", DType::F16},
                                                            {"__half2", DType::F16},
                                                            {"half2", DType::F16},
                                                            {"__nv_bfloat16", DType::BF16},
                                                            {"__nv_bfloat162", DType::BF16},
                                                            {"nv_bfloat16", DType::BF16},
                                                            {"nv_bfloat162", DType::BF16},
                                                            {"__nv_fp8_e4m3", DType::F8E4M3},
                                                            {"__nv_fp8_e5m2", DType::F8E5M2},
                                                            {"int8_t", DType::I8},
                                                            {"uint8_t", DType::U8},
                                                            {"uchar", DType::U8},
                                                            {"int32_t", DType::I32},
                                                            {"uint32_t", DType::U32},
                                                            {"uint", DType::U32},
                                                            {"int64_t", DType::I64},
                                                            {"longlong", DType::I64}};
    const auto found = names.find(word);
    return found == names.end() ? std::nullopt : std::optional(found->second);
}

/// The words of a type, counted: the order of "unsigned long long int" is free.
struct TypeWords {
    bool isUnsigned = false;
    int longs = 0;
    bool isChar = false;
    bool isShort = false;
    bool isInt = false;
    std::string_view other;
};

TypeWords countWords(const std::vector<std::string_view> &type)
{
    TypeWords words;
    for (const std::string_view written : type) {
        const std::string_view word = scalarOfVector(written);
        words.isUnsigned |= word == "unsigned";
        words.longs += word == "long";
        words.isChar |= word == "char";
        words.isShort |= word == "short";
        words.isInt |= isAnyOf(word, {"int", "signed", "unsigned"});
        if (!isAnyOf(word, {"unsigned", "signed", "long", "char", "short", "int"}))
            words.other = word;
    }
    return words;
}

std::optional<DType> elementOf(const TypeWords &type)
{
    if (type.other == "float")
        return DType::F32;
    if (type.other == "double")
        return DType::F64;
    if (!type.other.empty())
        return namedElement(type.other);
    if (type.isChar)
        return type.isUnsigned ? DType::U8 : DType::I8;
    if (type.isShort || (type.longs > 0 && type.isUnsigned))
        return std::nullopt;
    if (type.longs > 0)
        return DType::I64;
    if (type.isInt)
        return type.isUnsigned ? DType::U32 : DType::I32;
    return std::nullopt;
}

std::optional<ScalarType> scalarOf(const TypeWords &type)
{
    static const std::map<std::string_view, ScalarType> names = {
        {"float", ScalarType::Float32},   {"double", ScalarType::Float64},  {"uint", ScalarType::UInt32},
        {"int32_t", ScalarType::Int32},   {"uint32_t", ScalarType::UInt32}, {"int64_t", ScalarType::Int64},
        {"uint64_t", ScalarType::UInt64}, {"ulong", ScalarType::UInt64},    {"size_t", ScalarType::UInt64},
        {"ptrdiff_t", ScalarType::Int64}};
    if (!type.other.empty()) {
        const auto found = names.find(type.other);
        return found == names.end() ? std::nullopt : std::optional(found->second);
    }
    if (type.isChar || type.isShort)
        return std::nullopt;
    if (type.longs > 0)
        return type.isUnsigned ? ScalarType::UInt64 : ScalarType::Int64;
    if (type.isInt)
        return type.isUnsigned ? ScalarType::UInt32 : ScalarType::Int32;
    return std::nullopt;
}

/// The parameter with what its words stand for in their place.
std::vector<CodeToken> expanded(TokenSpan tokens, const TypeAliases &aliases, int depth = 0)
{
    std::vector<CodeToken> out;
    for (const CodeToken &token : tokens) {
        const auto alias = token.isWord() ? aliases.find(token.text) : aliases.end();
        if (alias == aliases.end() || depth == mostAliases || out.size() > maxOutlineParameters) {
            out.push_back(token);
            continue;
        }
        for (const CodeToken &inner : expanded(alias->second, aliases, depth + 1))
            out.push_back(inner);
    }
    return out;
}

std::string textOf(TokenSpan tokens)
{
    std::string text;
    for (const CodeToken &token : tokens) {
        const bool touches = text.empty() || token.is("*")
                                 ? text.ends_with('*')
                                 : text.ends_with("::") || token.is(":") || token.is("<") || token.is(">")
                                       || text.ends_with(':') || text.ends_with('<');
        if (!text.empty() && !touches)
            text += ' ';
        text += token.text;
    }
    return text;
}

} // namespace

KernelParameter readParameter(TokenSpan tokens, const TypeAliases &aliases)
{
    KernelParameter parameter;
    const auto isSign = [](const CodeToken &token, std::string_view sign) { return token.is(sign); };
    auto end = std::find_if(tokens.begin(), tokens.end(), [&](const auto &t) { return isSign(t, "="); });
    const bool isArray = std::any_of(tokens.begin(), end, [&](const auto &t) { return isSign(t, "["); });
    end = std::find_if(tokens.begin(), end, [&](const auto &t) { return isSign(t, "["); });
    // The last word is the name, unless it is a word of the type.
    auto last = end;
    if (last != tokens.begin() && std::prev(last)->isWord() && !isTypeWord(std::prev(last)->text)
        && !isQualifier(std::prev(last)->text)) {
        const auto words = std::count_if(
            tokens.begin(), last, [](const CodeToken &t) { return t.isWord() && !isQualifier(t.text); });
        if (words > 1) {
            --last;
            parameter.name = last->text;
        }
    }
    const TokenSpan written(tokens.begin(), last);
    parameter.type = textOf(written) + (isArray ? " *" : "");

    std::vector<std::string_view> type;
    int pointers = 0;
    bool isLocal = false;
    bool isReference = false;
    for (const CodeToken &token : expanded(written, aliases)) {
        pointers += token.is("*");
        isReference |= token.is("&");
        isLocal |= isAnyOf(token.text, {"__local", "local"});
        if (pointers == 0 || !token.is("const")) // "float *const" is no const float
            parameter.isConst |= isAnyOf(token.text, {"const", "__constant", "constant"});
        if (token.isWord() && !isQualifier(token.text))
            type.push_back(token.text);
    }
    pointers += isArray ? 1 : 0;
    const TypeWords words = countWords(type);
    if (isReference || pointers > 1 || type.empty())
        return parameter;
    if (pointers == 1) {
        parameter.kind = isLocal ? KernelParameter::Kind::Local : KernelParameter::Kind::Pointer;
        parameter.element = elementOf(words);
    } else if (words.other == "CUtensorMap") {
        parameter.kind = KernelParameter::Kind::TensorMap;
    } else if ((parameter.scalar = scalarOf(words))) {
        // A vector passed by value is none of the plan's types.
        const bool isVector = std::any_of(type.begin(), type.end(),
                                          [](std::string_view word) { return scalarOfVector(word) != word; });
        if (!isVector)
            parameter.kind = KernelParameter::Kind::Scalar;
        else
            parameter.scalar.reset();
    }
    return parameter;
}

} // namespace klineage::kernel
