// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/quantities.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

namespace klineage::run {

namespace {

struct Unit {
    std::string_view name;
    Quantity::Kind kind;
    double scale;
};
// Longer names first where one begins with another.
constexpr Unit units[] = {
    {"TFLOP/s", Quantity::Kind::Rate, 1e12}, {"GFLOP/s", Quantity::Kind::Rate, 1e9},
    {"TB/s", Quantity::Kind::Rate, 1e12},    {"GB/s", Quantity::Kind::Rate, 1e9},
    {"MB/s", Quantity::Kind::Rate, 1e6},     {"ns", Quantity::Kind::Time, 1},
    {"us", Quantity::Kind::Time, 1e3},       {"µs", Quantity::Kind::Time, 1e3},
    {"μs", Quantity::Kind::Time, 1e3},       {"ms", Quantity::Kind::Time, 1e6},
    {"s", Quantity::Kind::Time, 1e9},        {"%", Quantity::Kind::Percent, 1},
    {"percent", Quantity::Kind::Percent, 1}, {"×", Quantity::Kind::Factor, 1},
    {"x", Quantity::Kind::Factor, 1},        {"times", Quantity::Kind::Factor, 1},
};

bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

bool isWord(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & '\x80') != 0;
}

class Scanner
{
public:
    explicit Scanner(std::string_view text)
        : m_text(text)
    {}

    std::vector<Quantity> run()
    {
        std::vector<Quantity> found;
        while (m_at < m_text.size()) {
            const bool begins = isDigit(m_text[m_at])
                                && (m_at == 0 || (!isWord(m_text[m_at - 1]) && m_text[m_at - 1] != '.'));
            if (!begins)
                ++m_at;
            else if (std::optional<Quantity> quantity = take())
                found.push_back(std::move(*quantity));
        }
        return found;
    }

private:
    std::optional<Quantity> take()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && isDigit(m_text[m_at]))
            ++m_at;
        int decimals = 0;
        if (m_at + 1 < m_text.size() && m_text[m_at] == '.' && isDigit(m_text[m_at + 1])) {
            for (++m_at; m_at < m_text.size() && isDigit(m_text[m_at]); ++m_at)
                ++decimals;
        }
        double value = 0;
        std::from_chars(m_text.data() + begin, m_text.data() + m_at, value);
        const bool blank = m_at < m_text.size() && m_text[m_at] == ' ';
        const std::string_view rest = m_text.substr(m_at + (blank ? 1 : 0));
        for (const Unit &unit : units) {
            if (!rest.starts_with(unit.name) || !ends(rest.substr(unit.name.size()), unit, blank))
                continue;
            m_at += (blank ? 1 : 0) + unit.name.size();
            return Quantity{unit.kind, value * unit.scale, 0.5 * std::pow(10.0, -decimals) * unit.scale,
                            std::string(m_text.substr(begin, m_at - begin))};
        }
        return std::nullopt;
    }

    /// Whether what follows lets the unit be one: no further letters, and no other side of a shape.
    static bool ends(std::string_view after, const Unit &unit, bool blank)
    {
        if (!after.empty() && (isWord(after[0]) || after[0] == '/') && unit.name != "×" && unit.name != "%")
            return false;
        if (unit.name != "×" && unit.name != "x")
            return true;
        const std::size_t next = after.find_first_not_of(' ');
        if (next == std::string_view::npos)
            return true;
        if (isDigit(after[next]) || (next == 0 && isWord(after[0])))
            return false;
        return !blank || !isWord(after[next]); // "4 × K" is a shape, "4× faster" is not
    }

    std::string_view m_text;
    std::size_t m_at = 0;
};

} // namespace

std::vector<Quantity> quantitiesIn(std::string_view text)
{
    return Scanner(text).run();
}

} // namespace klineage::run
