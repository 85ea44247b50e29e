// SPDX-License-Identifier: GPL-3.0-or-later
// Recursive descent, one function a level of precedence, from `c ? a : b` down to numbers and names. The
// first problem wins: after it every function returns at once.
#include "core/base/suggest.h"
#include "core/kernel/expressionnode.h"

#include <array>
#include <charconv>
#include <optional>

namespace klineage::kernel {

namespace {

using Node = Expression::Node;
using NodePointer = std::shared_ptr<const Node>;

constexpr std::size_t maxTextBytes = 1000;
constexpr int maxNesting = 64;

struct Function {
    const char *name;
    Operation operation;
    std::size_t fewest;
    std::size_t most;
};

constexpr std::array<Function, 9> functions = {{
    {"ceil_div", Operation::CeilDiv, 2, 2},
    {"round_up", Operation::RoundUp, 2, 2},
    {"min", Operation::Min, 2, 8},
    {"max", Operation::Max, 2, 8},
    {"abs", Operation::Abs, 1, 1},
    {"sqrt", Operation::Sqrt, 1, 1},
    {"rsqrt", Operation::Rsqrt, 1, 1},
    {"log2", Operation::Log2, 1, 1},
    {"pow2_ceil", Operation::Pow2Ceil, 1, 1},
}};

struct Operator {
    std::string_view symbol;
    Operation operation;
};

bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

bool isNameStart(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class Parser
{
public:
    explicit Parser(std::string_view text)
        : m_text(text)
    {}

    tl::expected<NodePointer, ExpressionProblem> parse()
    {
        NodePointer root = choice();
        skipBlanks();
        if (!m_problem && m_at < m_text.size())
            report(m_at, "unexpected " + here() + "; expected an operator or the end.");
        if (m_problem)
            return tl::unexpected(*m_problem);
        return root;
    }

private:
    /// Counts how deep brackets, calls, prefixes and choices are inside each other: it bounds the recursion.
    class Level
    {
    public:
        explicit Level(Parser *parser)
            : m_parser(parser)
        {
            if (++m_parser->m_nesting > maxNesting)
                m_parser->report(m_parser->m_at, "nested more than " + std::to_string(maxNesting) + " deep.");
        }
        ~Level() { --m_parser->m_nesting; }
        Level(const Level &) = delete;
        Level &operator=(const Level &) = delete;

    private:
        Parser *m_parser;
    };

    void report(std::size_t at, std::string message)
    {
        if (!m_problem)
            m_problem = ExpressionProblem{static_cast<int>(at) + 1, std::move(message)};
    }

    void skipBlanks()
    {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t' || m_text[m_at] == '\n'))
            ++m_at;
    }

    std::string here() const
    {
        return m_at < m_text.size() ? '\'' + std::string(1, m_text[m_at]) + '\'' : "end";
    }

    bool accept(std::string_view symbol)
    {
        skipBlanks();
        if (m_problem || !m_text.substr(m_at).starts_with(symbol))
            return false;
        m_at += symbol.size();
        return true;
    }

    void expect(std::string_view symbol)
    {
        if (!accept(symbol))
            report(m_at, "unexpected " + here() + "; expected '" + std::string(symbol) + "'.");
    }

    NodePointer make(Operation operation, std::size_t at, std::vector<NodePointer> operands) const
    {
        auto node = std::make_shared<Node>();
        node->operation = operation;
        node->column = static_cast<int>(at) + 1;
        node->operands = std::move(operands);
        return node;
    }

    /// A chain of left-associative operators whose operands are parsed by next.
    NodePointer chain(NodePointer (Parser::*next)(), std::initializer_list<Operator> operators)
    {
        NodePointer left = (this->*next)();
        for (bool found = true; found && !m_problem;) {
            found = false;
            for (const Operator &candidate : operators) {
                skipBlanks();
                const std::size_t at = m_at;
                if (!accept(candidate.symbol))
                    continue;
                left = make(candidate.operation, at, {left, (this->*next)()});
                found = true;
                break;
            }
        }
        return left;
    }

    NodePointer choice()
    {
        NodePointer condition = disjunction();
        skipBlanks();
        const std::size_t at = m_at;
        if (!accept("?"))
            return condition;
        const Level level(this);
        NodePointer whenTrue = m_problem ? nullptr : choice();
        expect(":");
        NodePointer whenFalse = m_problem ? nullptr : choice();
        return make(Operation::Choose, at, {condition, whenTrue, whenFalse});
    }

    NodePointer disjunction() { return chain(&Parser::conjunction, {{"||", Operation::Or}}); }
    NodePointer conjunction() { return chain(&Parser::equality, {{"&&", Operation::And}}); }
    NodePointer equality()
    {
        return chain(&Parser::comparison, {{"==", Operation::Equal}, {"!=", Operation::NotEqual}});
    }
    NodePointer comparison()
    {
        return chain(&Parser::sum, {{"<=", Operation::LessOrEqual},
                                    {">=", Operation::GreaterOrEqual},
                                    {"<", Operation::Less},
                                    {">", Operation::Greater}});
    }
    NodePointer sum() { return chain(&Parser::product, {{"+", Operation::Add}, {"-", Operation::Subtract}}); }
    NodePointer product()
    {
        return chain(&Parser::prefixed,
                     {{"*", Operation::Multiply}, {"/", Operation::Divide}, {"%", Operation::Remainder}});
    }

    NodePointer prefixed()
    {
        skipBlanks();
        const std::size_t at = m_at;
        if (accept("-")) {
            // The most negative integer has no positive twin: its sign belongs to the literal.
            if (m_at < m_text.size() && isDigit(m_text[m_at]))
                return number(at);
            return applied(Operation::Negate, at);
        }
        return accept("!") ? applied(Operation::Not, at) : primary();
    }

    NodePointer applied(Operation operation, std::size_t at)
    {
        const Level level(this);
        return m_problem ? nullptr : make(operation, at, {prefixed()});
    }

    NodePointer primary()
    {
        skipBlanks();
        const std::size_t at = m_at;
        if (accept("(")) {
            const Level level(this);
            NodePointer inner = m_problem ? nullptr : choice();
            expect(")");
            return inner;
        }
        if (m_at < m_text.size() && isDigit(m_text[m_at]))
            return number(at);
        if (m_at < m_text.size() && isNameStart(m_text[m_at]))
            return nameOrCall();
        report(at, "unexpected " + here() + "; expected a number, a name or '('.");
        return nullptr;
    }

    void skipDigits()
    {
        while (m_at < m_text.size() && isDigit(m_text[m_at]))
            ++m_at;
    }

    /// begin is at the sign of a negative literal, or at its first digit.
    NodePointer number(std::size_t begin)
    {
        bool whole = true;
        skipDigits();
        if (m_at < m_text.size() && m_text[m_at] == '.') {
            whole = false;
            ++m_at;
            skipDigits();
        }
        if (m_at < m_text.size() && (m_text[m_at] == 'e' || m_text[m_at] == 'E')) {
            whole = false;
            ++m_at;
            if (m_at < m_text.size() && (m_text[m_at] == '+' || m_text[m_at] == '-'))
                ++m_at;
            skipDigits();
        }
        if (m_at < m_text.size() && (isNameStart(m_text[m_at]) || m_text[m_at] == '.')) {
            report(m_at, "unexpected " + here() + " after a number; expected an operator.");
            return nullptr;
        }
        return whole ? literal<std::int64_t>(begin, "the integer does not fit in 64 bits.")
                     : literal<double>(begin, "this is no finite number.");
    }

    template <typename T>
    NodePointer literal(std::size_t begin, const char *problem)
    {
        const char *const last = m_text.data() + m_at;
        T value{};
        const auto [end, status] = std::from_chars(m_text.data() + begin, last, value);
        if (status != std::errc() || end != last) {
            report(begin, problem);
            return nullptr;
        }
        auto node = std::make_shared<Node>();
        node->constant = value;
        node->column = static_cast<int>(begin) + 1;
        return node;
    }

    NodePointer nameOrCall()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && (isNameStart(m_text[m_at]) || isDigit(m_text[m_at])))
            ++m_at;
        const std::string name(m_text.substr(begin, m_at - begin));
        if (accept("("))
            return call(begin, name);
        auto node = std::make_shared<Node>();
        node->operation = Operation::Name;
        node->name = name;
        node->column = static_cast<int>(begin) + 1;
        return node;
    }

    NodePointer call(std::size_t begin, const std::string &name)
    {
        const Level level(this);
        std::vector<NodePointer> operands;
        if (!accept(")")) {
            do {
                operands.push_back(m_problem ? nullptr : choice());
            } while (accept(","));
            if (!accept(")"))
                report(m_at, "unexpected " + here() + "; expected ',' or ')'.");
        }
        if (m_problem)
            return nullptr;

        std::vector<std::string> known;
        for (const Function &function : functions) {
            known.emplace_back(function.name);
            if (name != function.name)
                continue;
            if (operands.size() >= function.fewest && operands.size() <= function.most)
                return make(function.operation, begin, std::move(operands));
            const bool exact = function.fewest == function.most;
            report(begin, '\'' + name + "' takes " + std::to_string(function.fewest)
                              + (exact ? "" : " to " + std::to_string(function.most)) + " values; got "
                              + std::to_string(operands.size()) + '.');
            return nullptr;
        }
        const std::string hint = didYouMean(name, known);
        report(begin, "there is no function '" + name + '\''
                          + (hint.empty() ? "; there are " + quotedList(known) + '.' : hint));
        return nullptr;
    }

    std::string_view m_text;
    std::size_t m_at = 0;
    int m_nesting = 0;
    std::optional<ExpressionProblem> m_problem;
};

} // namespace

tl::expected<NodePointer, ExpressionProblem> parseExpression(std::string_view text)
{
    if (text.size() > maxTextBytes)
        return tl::unexpected(ExpressionProblem{1, "longer than the limit of " + std::to_string(maxTextBytes)
                                                       + " characters."});
    return Parser(text).parse();
}

} // namespace klineage::kernel
