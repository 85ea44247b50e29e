// SPDX-License-Identifier: GPL-3.0-or-later
// A pass over the words of an expression: operands are translated one by one, operators stand as they are. What comes out is parsed as
// a plan's expression in the end, so that nothing is passed on that a plan cannot say.
#include "core/workload/guess/launchreading.h"

#include "core/base/numbertext.h"
#include "core/kernel/outline/declarations.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace klineage::workload {

namespace {

using kernel::CodeToken;
using Tokens = std::span<const CodeToken>;

constexpr int mostNamesDeep = 8;
constexpr std::size_t mostCharacters = 1'000;

template <typename List>
bool isListed(std::string_view word, const List &list)
{
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

constexpr std::array typeWords = {"int",      "unsigned", "long",   "short",   "char",    "float",
                                  "double",   "bool",     "size_t", "int32_t", "int64_t", "uint32_t",
                                  "uint64_t", "uint",     "const",  "signed",  "half",    "__half",
                                  "void",     "auto",     "std",    "uint8_t", "int8_t",  "__nv_bfloat16"};
constexpr std::array ceilDivWords = {
    "ceil_div", "ceilDiv",     "ceildiv", "CeilDiv",   "CEIL_DIV",      "CEILDIV",    "cdiv",     "CDIV",
    "div_up",   "divUp",       "DIV_UP",  "divup",     "DIVUP",         "iDivUp",     "div_ceil", "divCeil",
    "DIV_CEIL", "ceil_divide", "cld",     "divide_up", "cuda_ceil_div", "ceiling_div"};

int bytesOfType(Tokens words)
{
    int bytes = 0;
    for (const CodeToken &token : words) {
        if (token.is("*"))
            return 8;
        if (isListed(token.text, std::array{"char", "bool", "uint8_t", "int8_t", "__nv_fp8_e4m3"}))
            bytes = 1;
        else if (isListed(token.text,
                          std::array{"short", "half", "__half", "__nv_bfloat16", "uint16_t", "nv_bfloat16"}))
            bytes = 2;
        else if (isListed(token.text,
                          std::array{"double", "long", "size_t", "int64_t", "uint64_t", "float2", "half4"}))
            bytes = 8;
        else if (token.is("float4") || token.is("int4") || token.is("uint4"))
            bytes = 16;
        else if (isListed(token.text, std::array{"int", "float", "unsigned", "int32_t", "uint32_t", "uint",
                                                 "half2", "scalar_t"}))
            bytes = std::max(bytes, 4);
    }
    return bytes;
}

bool isWholeNumber(std::string_view text, std::int64_t &value)
{
    const auto [stopped, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && stopped == text.data() + text.size();
}

/// Whether the parenthesis that begins the text is closed by the one that ends it.
bool isWrapped(std::string_view text)
{
    if (!text.starts_with('(') || !text.ends_with(')'))
        return false;
    int depth = 0;
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth == 0)
            return false;
    }
    return true;
}

std::string withoutParentheses(std::string_view text)
{
    while (isWrapped(text))
        text = text.substr(1, text.size() - 2);
    return std::string(text);
}

/// As an operand of any sign.
std::string asOperand(std::string_view text)
{
    const std::string bare = withoutParentheses(text);
    const std::size_t open = bare.find('(');
    const bool isCall =
        open != std::string::npos && bare.find(' ') > open && isWrapped(std::string_view(bare).substr(open));
    return isCall || bare.find_first_of(" -") == std::string::npos ? bare : '(' + bare + ')';
}

/// "n" for "(n + D - 1)" and "(n + 255)" before "/ D"; empty for anything else.
std::string roundedUp(std::string_view dividend, const std::string &divisor)
{
    if (!dividend.starts_with('(') || !dividend.ends_with(')'))
        return {};
    dividend = dividend.substr(1, dividend.size() - 2);
    for (const std::string &ending :
         {" + " + divisor + " - 1", " + (" + divisor + " - 1)", " - 1 + " + divisor}) {
        if (dividend.ends_with(ending))
            return std::string(dividend.substr(0, dividend.size() - ending.size()));
    }
    const std::size_t plus = dividend.rfind(" + ");
    std::int64_t by = 0;
    std::int64_t less = 0;
    if (plus != std::string_view::npos && isWholeNumber(divisor, by)
        && isWholeNumber(dividend.substr(plus + 3), less) && less == by - 1)
        return std::string(dividend.substr(0, plus));
    return {};
}

} // namespace

class HostExpressionReader
{
public:
    explicit HostExpressionReader(HostExpressions &host)
        : m_host(host)
    {}

    bool read(const std::string &text, int depth, std::string &out)
    {
        const kernel::CodeScan scan = kernel::scanCode(text);
        return !scan.tokens.empty() && read(Tokens(scan.tokens), depth, out);
    }

private:
    bool miss(std::string_view what)
    {
        if (m_host.m_missing.empty())
            m_host.m_missing = what;
        return false;
    }

    /// Operands and the operators between them.
    bool read(Tokens tokens, int depth, std::string &out)
    {
        std::size_t i = 0;
        std::size_t operand = 0; // of the last one, where it begins in out
        while (i < tokens.size()) {
            if (!tokens[i].isWord() && tokens[i].kind != CodeToken::Kind::Number && !tokens[i].is("(")) {
                if (tokens[i].is("-") && out.empty()) {
                    out += '-';
                    ++i;
                    continue;
                }
                if (!readOperator(tokens, i, depth, operand, out))
                    return false;
                continue;
            }
            operand = out.size();
            if (!readOperand(tokens, i, depth, out))
                return false;
            if (out.size() > mostCharacters)
                return miss("an expression of this length");
        }
        return !out.empty();
    }

    bool readOperator(Tokens tokens, std::size_t &i, int depth, std::size_t operand, std::string &out)
    {
        std::string sign(tokens[i].text);
        const bool isDouble = i + 1 < tokens.size() && tokens[i + 1].kind == CodeToken::Kind::Sign
                              && isListed(sign + std::string(tokens[i + 1].text),
                                          std::array{"<=", ">=", "==", "!=", "&&", "||"});
        if (isDouble)
            sign += tokens[++i].text;
        if (!isListed(sign, std::array{"+", "-", "*", "/", "%", "<", ">", "?", ":",
                                       "<=", ">=", "==", "!=", "&&", "||"}))
            return miss("'" + sign + "'");
        ++i;
        if (sign != "/" || i >= tokens.size()) {
            out += ' ' + sign + ' ';
            return true;
        }
        std::string divisor;
        if (!readOperand(tokens, i, depth, divisor))
            return false;
        const std::string count = roundedUp(std::string_view(out).substr(operand), divisor);
        if (count.empty())
            out += " / " + divisor;
        else
            out = out.substr(0, operand) + "ceil_div(" + withoutParentheses(count) + ", " + divisor + ')';
        return true;
    }

    bool readNumber(Tokens tokens, std::size_t &i, std::string &out)
    {
        std::string text(tokens[i++].text);
        const bool isHex = text.starts_with("0x") || text.starts_with("0X");
        if (!isHex && (text.ends_with('e') || text.ends_with('E')) && i + 1 < tokens.size())
            text += std::string(tokens[i].text) + std::string(tokens[i + 1].text), i += 2;
        std::erase(text, '\'');
        while (!text.empty()
               && std::string_view(isHex ? "uUlL" : "uUlLfF").find(text.back()) != std::string_view::npos)
            text.pop_back();
        if (isHex) {
            std::int64_t value = 0;
            const auto [end, problem] =
                std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
            if (problem != std::errc() || end != text.data() + text.size())
                return miss(text);
            out += std::to_string(value);
            return true;
        }
        if (text.ends_with('.'))
            text += '0';
        out += text.starts_with('.') ? '0' + text : text;
        return true;
    }

    bool readOperand(Tokens tokens, std::size_t &i, int depth, std::string &out)
    {
        const CodeToken &token = tokens[i];
        if (token.kind == CodeToken::Kind::Number)
            return readNumber(tokens, i, out);
        if (token.is("("))
            return readParentheses(tokens, i, depth, out);
        if (!token.isWord())
            return miss('\'' + std::string(token.text) + '\'');
        const auto isAt = [&](std::size_t at, std::string_view sign) {
            return at < tokens.size() && tokens[at].is(sign);
        };
        if (isAt(i + 1, ":") && isAt(i + 2, ":")) {
            i += 3;
            return i < tokens.size() ? readOperand(tokens, i, depth, out) : miss(token.text);
        }
        if (token.text.ends_with("_cast") && isAt(i + 1, "<")) {
            while (i < tokens.size() && !tokens[i].is(">"))
                ++i;
            ++i;
            return i < tokens.size() ? readOperand(tokens, i, depth, out) : miss(token.text);
        }
        if (isAt(i + 1, "("))
            return readCall(tokens, i, depth, out);
        if (isAt(i + 1, "."))
            return readMember(tokens, i, depth, out);
        ++i;
        return readName(token.text, depth, out);
    }

    bool readParentheses(Tokens tokens, std::size_t &i, int depth, std::string &out)
    {
        const Tokens inner = kernel::insideSigns(tokens, i);
        const std::size_t past = kernel::pastClosingSign(tokens, i);
        const bool isCast = past < tokens.size() && !inner.empty()
                            && std::all_of(inner.begin(), inner.end(), [](const CodeToken &t) {
                                   return isListed(t.text, typeWords) || t.is(":") || t.is("*");
                               });
        i = past;
        if (isCast)
            return readOperand(tokens, i, depth, out);
        std::string text;
        if (++m_nesting > mostNesting || !read(inner, depth, text))
            return miss("parentheses");
        --m_nesting;
        out += asOperand(text);
        return true;
    }

    bool readCall(Tokens tokens, std::size_t &i, int depth, std::string &out)
    {
        const std::string_view name = tokens[i].text;
        const Tokens inner = kernel::insideSigns(tokens, i + 1);
        i = kernel::pastClosingSign(tokens, i + 1);
        if (name == "sizeof") {
            const int bytes = bytesOfType(inner);
            out += std::to_string(bytes);
            return bytes > 0 || miss("sizeof");
        }
        if (++m_nesting > mostNesting)
            return miss("calls in calls");
        std::vector<std::string> arguments;
        for (const Tokens part : kernel::splitAtCommas(inner)) {
            std::string argument;
            if (!read(part, depth, argument))
                return false;
            arguments.push_back(withoutParentheses(argument));
        }
        --m_nesting;
        if ((name == "ceil" || name == "ceilf") && arguments.size() == 1) {
            const std::size_t slash = arguments[0].rfind(" / ");
            const bool isQuotient =
                slash != std::string::npos && arguments[0].find(')', slash) == std::string::npos;
            out += isQuotient
                       ? "ceil_div(" + withoutParentheses(std::string_view(arguments[0]).substr(0, slash))
                             + ", " + withoutParentheses(std::string_view(arguments[0]).substr(slash + 3))
                             + ')'
                       : arguments[0];
            return true;
        }
        if (isListed(name, typeWords) && arguments.size() == 1) { // int(x)
            out += '(' + arguments[0] + ')';
            return true;
        }
        std::string called(name);
        if (isListed(name, ceilDivWords) && arguments.size() == 2)
            called = "ceil_div";
        else if (name == "sqrtf" || name == "rsqrtf")
            called.pop_back();
        else if (!isListed(name, std::array{"min", "max", "abs", "sqrt", "rsqrt", "log2"}))
            return miss(std::string(name) + "()");
        out += called + '(';
        for (std::size_t k = 0; k < arguments.size(); ++k)
            out += (k == 0 ? "" : ", ") + arguments[k];
        out += ')';
        return true;
    }

    /// x.size(1), x.numel(), grid.x
    bool readMember(Tokens tokens, std::size_t &i, int depth, std::string &out)
    {
        const std::string name(tokens[i].text);
        const std::string member(i + 2 < tokens.size() ? tokens[i + 2].text : std::string_view());
        const bool isCall = i + 3 < tokens.size() && tokens[i + 3].is("(");
        if (!isCall) {
            i += 3;
            return readName(name + '.' + member, depth, out);
        }
        const Tokens inner = kernel::insideSigns(tokens, i + 3);
        i = kernel::pastClosingSign(tokens, i + 3);
        const auto bound = m_host.m_tensors.find(name);
        const Tensor *tensor =
            m_host.m_workload.findTensor(bound == m_host.m_tensors.end() ? name : bound->second);
        if (!tensor)
            return miss(name);
        std::vector<std::string> extents;
        for (const kernel::Expression &extent : tensor->shape)
            extents.push_back(extent.text());
        if (member == "numel" || (member == "size" && inner.empty())) {
            for (std::size_t k = 0; k < extents.size(); ++k)
                out += (k == 0 ? "(" : " * ") + extents[k];
            out += extents.empty() ? "1" : ")";
            return true;
        }
        std::int64_t at = 0;
        if (member != "size" || inner.empty() || !isWholeNumber(inner.back().text, at))
            return miss(name + '.' + member);
        if (inner.size() == 2 && inner[0].is("-"))
            at = static_cast<std::int64_t>(extents.size()) - at;
        if (at < 0 || at >= static_cast<std::int64_t>(extents.size()))
            return miss(name + '.' + member);
        out += asOperand(extents[static_cast<std::size_t>(at)]);
        return true;
    }

    bool readName(std::string_view name, int depth, std::string &out)
    {
        const auto isAxis = [this](std::string_view word) { return isListed(word, m_host.m_workload.axes); };
        const auto known = m_host.m_known.find(name);
        if (known != m_host.m_known.end()) {
            out += asOperand(known->second);
            return true;
        }
        if (isAxis(name)) {
            out += name;
            return true;
        }
        const auto value = m_host.m_launch.values.find(name);
        if (value == m_host.m_launch.values.end() || depth == mostNamesDeep)
            return miss(name);
        std::string text;
        if (!read(value->second, depth + 1, text))
            return miss(name);
        out += asOperand(text);
        return true;
    }

    static constexpr int mostNesting = 32;
    HostExpressions &m_host;
    int m_nesting = 0;
};

std::optional<std::string> HostExpressions::planExpression(const std::string &text)
{
    m_missing.clear();
    std::string out;
    if (text.size() > mostCharacters || !HostExpressionReader(*this).read(text, 0, out)
        || out.size() > mostCharacters)
        return std::nullopt;
    out = withoutParentheses(out);
    const Result<kernel::Expression> parsed = kernel::Expression::parse(out);
    if (!parsed) {
        m_missing = "'" + out + "'";
        return std::nullopt;
    }
    return out;
}

std::string nameOfHostArgument(std::string_view argument)
{
    const std::string text(argument);
    const kernel::CodeScan scan = kernel::scanCode(text);
    const auto &tokens = scan.tokens;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool isNamespace = i + 1 < tokens.size() && tokens[i + 1].is(":");
        const bool isCast = tokens[i].text.ends_with("_cast");
        if (tokens[i].isWord() && !isNamespace && !isCast && !isListed(tokens[i].text, typeWords)
            && !(i + 1 < tokens.size() && tokens[i + 1].is("(")))
            return std::string(tokens[i].text);
    }
    return {};
}

std::string plainHostName(std::string_view name)
{
    for (const std::string_view before : {"d_", "dev_", "gpu_", "device_", "h_", "m_"}) {
        if (name.size() > before.size() && name.starts_with(before))
            return std::string(name.substr(before.size()));
    }
    for (const std::string_view after : {"_d", "_dev", "_gpu", "_device", "_ptr", "_data"}) {
        if (name.size() > after.size() && name.ends_with(after))
            return std::string(name.substr(0, name.size() - after.size()));
    }
    return std::string(name);
}

} // namespace klineage::workload
