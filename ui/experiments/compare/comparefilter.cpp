// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/compare/comparefilter.h"

#include "core/base/suggest.h"

#include <QCoreApplication>

#include <algorithm>
#include <array>
#include <cmath>

namespace klineage::ui {

namespace {

constexpr std::size_t mostFilterTerms = 100;
/// Longest first, so that "<=" is not read as "<".
constexpr std::array filterComparisons{"!=", "<=", ">=", "!~", "=", "<", ">", "~"};

QString filterText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::CompareFilter", text);
}

/// At blanks outside of quotes; quotes stay.
QStringList wordsOf(const QString &text)
{
    QStringList words;
    QString word;
    bool isQuoted = false;
    for (const QChar c : text) {
        if (c == u'"')
            isQuoted = !isQuoted;
        if (c.isSpace() && !isQuoted) {
            if (!word.isEmpty())
                words << word;
            word.clear();
        } else {
            word += c;
        }
    }
    if (!word.isEmpty())
        words << word;
    return words;
}

QString withoutQuotes(QString text)
{
    return text.remove(u'"');
}

CompareFilter::Term termOf(const QString &word)
{
    // The first comparison that stands outside of quotes.
    for (qsizetype at = 1; at < word.size() && word[at] != u'"'; ++at) {
        for (const char *comparison : filterComparisons) {
            const QLatin1String sign(comparison);
            if (QStringView(word).mid(at).startsWith(sign))
                return {word.left(at), sign, withoutQuotes(word.mid(at + sign.size()))};
        }
    }
    return {{}, QStringLiteral("~"), withoutQuotes(word)};
}

bool isOfSizes(const QString &comparison)
{
    return comparison.startsWith(u'<') || comparison.startsWith(u'>');
}

/// Why the term is none; empty: it is one.
QString termProblem(const CompareFilter::Term &term, const std::vector<CompareColumn> &columns)
{
    if (term.column.isEmpty())
        return {};
    const CompareColumn *column = findColumn(columns, term.column);
    if (!column) {
        std::vector<std::string> names;
        for (const CompareColumn &one : columns)
            names.push_back(one.id.toStdString());
        return filterText("No column is called '%1'%2.")
            .arg(term.column, QString::fromStdString(didYouMean(term.column.toStdString(), names)));
    }
    if (isOfSizes(term.comparison) && !column->isNumber())
        return filterText("'%1' is text: compare it with =, !=, ~ or !~.").arg(column->id);
    bool isNumber = false;
    term.value.toDouble(&isNumber);
    if (isOfSizes(term.comparison) && !isNumber)
        return filterText("'%1' is no number to compare '%2' with.").arg(term.value, column->id);
    return {};
}

bool holdsOfNumber(const CompareFilter::Term &term, double have)
{
    bool isNumber = false;
    const double wanted = term.value.toDouble(&isNumber);
    if (term.comparison == QLatin1String("<"))
        return have < wanted;
    if (term.comparison == QLatin1String("<="))
        return have <= wanted;
    if (term.comparison == QLatin1String(">"))
        return have > wanted;
    if (term.comparison == QLatin1String(">="))
        return have >= wanted;
    // What was typed has fewer digits than what was measured.
    const bool isSame = isNumber && std::fabs(have - wanted) <= 1e-9 * std::max(1.0, std::fabs(have));
    return term.comparison == QLatin1String("!=") ? !isSame : isSame;
}

bool holds(const CompareFilter::Term &term, const CompareColumn &column, const ComparedRun &run)
{
    const QVariant value = column.value(run);
    const bool isNegated = term.comparison.startsWith(u'!');
    if (!value.isValid())
        return isNegated ? !term.value.isEmpty() : term.value.isEmpty();
    if (term.comparison.endsWith(u'~'))
        return exactValue(value).contains(term.value, Qt::CaseInsensitive) != isNegated;
    if (column.isNumber())
        return holdsOfNumber(term, value.toDouble());
    return (value.toString().compare(term.value, Qt::CaseInsensitive) == 0) != isNegated;
}

} // namespace

CompareFilter::CompareFilter(const QString &text, const std::vector<CompareColumn> &columns, QString *problem)
{
    problem->clear();
    for (const QString &word : wordsOf(text)) {
        const Term term = termOf(word);
        const QString wrong = m_terms.size() >= mostFilterTerms
                                  ? filterText("The filter has more than %1 terms.").arg(mostFilterTerms)
                                  : termProblem(term, columns);
        if (wrong.isEmpty())
            m_terms.push_back(term);
        else if (problem->isEmpty())
            *problem = wrong;
    }
}

bool CompareFilter::accepts(const ComparedRun &run, const std::vector<CompareColumn> &columns) const
{
    return std::all_of(m_terms.begin(), m_terms.end(), [&](const Term &term) {
        if (const CompareColumn *column = findColumn(columns, term.column))
            return holds(term, *column, run);
        return std::any_of(columns.begin(), columns.end(), [&](const CompareColumn &column) {
            return !column.isNumber() && holds(term, column, run) && column.value(run).isValid();
        });
    });
}

QString filterTerm(const QString &column, const QString &comparison, const QString &value)
{
    const bool isPlain =
        !value.isEmpty() && std::none_of(value.begin(), value.end(), [](QChar c) { return c.isSpace(); });
    return column + comparison + (isPlain ? value : u'"' + withoutQuotes(value) + u'"');
}

} // namespace klineage::ui
