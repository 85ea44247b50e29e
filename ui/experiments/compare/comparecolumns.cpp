// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/compare/comparecolumns.h"

#include "core/base/numbertext.h"
#include "ui/style/format.h"

#include <QCoreApplication>
#include <QDateTime>

#include <algorithm>
#include <cmath>
#include <set>

namespace klineage::ui {

namespace {

using ColumnKind = CompareColumn::Kind;

constexpr std::size_t mostOptionColumns = 200;

QString columnText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::CompareColumns", text);
}

QVariant textOrNone(const std::string &text)
{
    return text.empty() ? QVariant() : QVariant(QString::fromStdString(text));
}

QVariant minutesOf(const ComparedRun &run)
{
    const auto &steps = run.run->record.steps;
    if (steps.empty())
        return {};
    const auto timeOf = [](const std::string &text) {
        return QDateTime::fromString(QString::fromStdString(text), Qt::ISODateWithMs);
    };
    const QDateTime begin = timeOf(run.run->record.settings.created);
    const QDateTime end = timeOf(steps.back().time);
    return begin.isValid() && end.isValid() && begin <= end
               ? QVariant(static_cast<double>(begin.msecsTo(end)) / 60'000.0)
               : QVariant();
}

QVariant correctShare(const ComparedRun &run)
{
    const run::Summary &summary = run.run->summary;
    const int candidates = summary.valid + summary.failed + summary.wrappers;
    return candidates > 0 ? QVariant(static_cast<double>(summary.valid) / candidates) : QVariant();
}

QVariant valueOrNone(double value)
{
    return value > 0 ? QVariant(value) : QVariant();
}

template <typename Get>
CompareColumn textColumn(const char *id, const QString &title, const QString &tip, Get get)
{
    return {QLatin1String(id), title, tip, ColumnKind::Text,
            [get](const ComparedRun &run) { return textOrNone(get(run)); }};
}

CompareColumn countColumn(const char *id, const QString &title, const QString &tip,
                          const std::function<qint64(const ComparedRun &)> &get)
{
    return {QLatin1String(id), title, tip, ColumnKind::Count,
            [get](const ComparedRun &run) { return QVariant(static_cast<qlonglong>(get(run))); }};
}

CompareColumn moneyColumn(const char *id, const QString &title, const QString &tip,
                          const std::function<double(const ComparedRun &)> &get)
{
    return {QLatin1String(id), title, tip, ColumnKind::Money,
            [get](const ComparedRun &run) { return QVariant(get(run)); }};
}

CompareColumn speedupColumn(const char *id, const QString &title, const QString &tip,
                            SpeedupFigure ComparedRun::*figure)
{
    return {
        QLatin1String(id),
        title,
        columnText(
            "%1\nPaired: of rounds in which both took part. ≈ was not paired. A group shows the geometric mean "
            "of its successes, and how many of its runs these are.")
            .arg(tip),
        ColumnKind::Speedup,
        [figure](const ComparedRun &run) { return valueOrNone((run.*figure).value); },
        figure};
}

const run::Settings &settingsOf(const ComparedRun &run)
{
    return run.run->record.settings;
}

void addNames(std::vector<CompareColumn> &columns)
{
    columns.push_back(textColumn("run", columnText("Run"), columnText("Id of the run: its folder"),
                                 [](const ComparedRun &r) { return settingsOf(r).id; }));
    columns.push_back(textColumn("experiment", columnText("Experiment"),
                                 columnText("Experiment that the run belongs to"),
                                 [](const ComparedRun &r) { return r.experiment.toStdString(); }));
    columns.push_back({QStringLiteral("state"), columnText("State"),
                       columnText("Running, stopped, or how it ended"), ColumnKind::Text,
                       [](const ComparedRun &r) { return QVariant(runStateStyle(*r.run).word); }});
    columns.push_back({QStringLiteral("success"), columnText("Success"),
                       columnText("yes: the run is over, and its final candidate is faster than its root"),
                       ColumnKind::Text, [](const ComparedRun &r) {
                           return r.run->isFinished()
                                      ? QVariant(r.isSuccess() ? columnText("yes") : columnText("no"))
                                      : QVariant();
                       }});
    columns.push_back(
        textColumn("kind", columnText("Kind"), columnText("What the run does"),
                   [](const ComparedRun &r) { return std::string(run::toString(settingsOf(r).kind)); }));
    columns.push_back(textColumn("policy", columnText("Policy"), columnText("Who decides what is tried next"),
                                 [](const ComparedRun &r) { return settingsOf(r).policy; }));
    columns.push_back(textColumn("workload", columnText("Workload"), columnText("What the kernel computes"),
                                 [](const ComparedRun &r) { return settingsOf(r).workload; }));
    columns.push_back(textColumn("platform", columnText("Platform"), columnText("Where it is timed"),
                                 [](const ComparedRun &r) { return settingsOf(r).platform; }));
    columns.push_back(textColumn("from", columnText("From"), columnText("What the run began with"),
                                 [](const ComparedRun &r) { return settingsOf(r).subject; }));
    columns.push_back(textColumn("provider", columnText("Author"), columnText("Who answers the questions"),
                                 [](const ComparedRun &r) { return settingsOf(r).provider; }));
    columns.push_back(textColumn("model", columnText("Model"), columnText("As its server calls it"),
                                 [](const ComparedRun &r) { return settingsOf(r).model; }));
    columns.push_back(
        countColumn("seed", columnText("Seed"), columnText("Number of the attempt"),
                    [](const ComparedRun &r) { return static_cast<qint64>(settingsOf(r).seed); }));
    columns.back().kind = ColumnKind::Text; // a name, not an amount
    columns.back().value = [](const ComparedRun &r) { return QVariant(QString::number(settingsOf(r).seed)); };
    columns.push_back(textColumn("created", columnText("Created"), columnText("When it began, UTC"),
                                 [](const ComparedRun &r) { return settingsOf(r).created; }));
    columns.push_back(textColumn("ending", columnText("Ending"), columnText("How it ended, and why"),
                                 [](const ComparedRun &r) { return r.run->record.ending.text(); }));
}

void addSpeedups(std::vector<CompareColumn> &columns)
{
    columns.push_back(textColumn(
        "reference", columnText("Reference"),
        columnText(
            "T_ref of the run: the reference that was the fastest correct one beside its root; root: there was none"),
        [](const ComparedRun &r) { return r.run->summary.reference.name; }));
    columns.push_back(speedupColumn(
        "root_speedup", columnText("Root's"),
        columnText("T_ref / T_root: the speedup of the root over the run's reference."), &ComparedRun::root));
    columns.push_back(speedupColumn(
        "best", columnText("Best"),
        columnText("T_ref / T_gen of the best step, picked because it measured best: it flatters."),
        &ComparedRun::best));
    columns.push_back(speedupColumn(
        "final_speedup", columnText("Final"),
        columnText("T_ref / T_gen of the final candidate, timed anew by the audit (◇); without an "
                   "audit of the best step."),
        &ComparedRun::final));
    columns.push_back(speedupColumn(
        "gain", columnText("Gain over root"),
        columnText(
            "T_root / T_final. Paired when the audit timed both; otherwise final over root's, two speedups over the "
            "reference."),
        &ComparedRun::gain));
    columns.push_back({QStringLiteral("gain_low"), columnText("Gain, low"),
                       columnText("Lower end of the paired gain's 95 % interval"), ColumnKind::Factor,
                       [](const ComparedRun &r) { return valueOrNone(r.gain.low); }});
    columns.push_back({QStringLiteral("gain_high"), columnText("Gain, high"),
                       columnText("Upper end of the paired gain's 95 % interval"), ColumnKind::Factor,
                       [](const ComparedRun &r) { return valueOrNone(r.gain.high); }});
}

void addAmounts(std::vector<CompareColumn> &columns)
{
    columns.push_back(countColumn("questions", columnText("Questions"),
                                  columnText("Steps in which the author was asked"),
                                  [](const ComparedRun &r) { return r.run->summary.questions; }));
    columns.push_back(
        countColumn("steps", columnText("Steps"), columnText("Recorded steps"),
                    [](const ComparedRun &r) { return static_cast<qint64>(r.run->record.steps.size()); }));
    columns.push_back(
        countColumn("trials", columnText("Trials"), columnText("What the gate was asked"),
                    [](const ComparedRun &r) { return static_cast<qint64>(r.run->record.trials.size()); }));
    columns.push_back(countColumn("valid", columnText("Valid"), columnText("Candidates that were correct"),
                                  [](const ComparedRun &r) { return r.run->summary.valid; }));
    columns.push_back(countColumn("failed", columnText("Failed"),
                                  columnText("Candidates and replies that failed"),
                                  [](const ComparedRun &r) { return r.run->summary.failed; }));
    columns.push_back(countColumn("wrappers", columnText("Wrappers"),
                                  columnText("Candidates without work of their own"),
                                  [](const ComparedRun &r) { return r.run->summary.wrappers; }));
    columns.push_back({QStringLiteral("correct"), columnText("Correct"),
                       columnText("Valid candidates among valid, failed and wrappers"), ColumnKind::Share,
                       correctShare});
    columns.push_back(moneyColumn("dollars", columnText("Spent"), columnText("By the run's ledger"),
                                  [](const ComparedRun &r) { return r.run->spentDollars; }));
    columns.push_back(moneyColumn("load_dollars", columnText("For cards"),
                                  columnText("Of it for reading cards"),
                                  [](const ComparedRun &r) { return r.run->summary.loadDollars; }));
    columns.push_back(moneyColumn("cap_dollars", columnText("Cap"), columnText("The run's budget"),
                                  [](const ComparedRun &r) { return settingsOf(r).capDollars; }));
    columns.push_back(countColumn("tokens_in", columnText("Tokens in"), columnText("From the cache, too"),
                                  [](const ComparedRun &r) {
                                      const llm::Usage &usage = r.run->usage;
                                      return usage.input + usage.cacheRead + usage.cacheWrite;
                                  }));
    columns.push_back(countColumn("tokens_out", columnText("Tokens out"),
                                  columnText("As the server counted them"),
                                  [](const ComparedRun &r) { return r.run->usage.output; }));
    columns.push_back({QStringLiteral("minutes"), columnText("Minutes"),
                       columnText("From when it was created to its last step; pauses count"),
                       ColumnKind::Minutes, minutesOf});
}

/// What only some runs have in run.toml.
void addSettings(std::vector<CompareColumn> &columns, const std::vector<ComparedRun> &runs)
{
    using Settings = std::map<std::string, std::string>;
    const std::pair<QString, Settings run::Settings::*> tables[] = {
        {QStringLiteral("option."), &run::Settings::options},
        {QStringLiteral("author."), &run::Settings::author}};
    for (const auto &[prefix, table] : tables) {
        std::set<std::string> names;
        for (const ComparedRun &run : runs) {
            for (const auto &[name, value] : settingsOf(run).*table) {
                if (names.size() < mostOptionColumns)
                    names.insert(name);
            }
        }
        for (const std::string &name : names) {
            const QString id = prefix + QString::fromStdString(name);
            QString title = QString::fromStdString(name).replace(QLatin1Char('_'), QLatin1Char(' '));
            title[0] = title[0].toUpper();
            columns.push_back({id, title, columnText("%1 of run.toml").arg(id), ColumnKind::Text,
                               [name, table = table](const ComparedRun &run) {
                                   const Settings &values = settingsOf(run).*table;
                                   const auto found = values.find(name);
                                   return found == values.end() ? QVariant() : textOrNone(found->second);
                               }});
        }
    }
}

QString factorText(double value, bool paired)
{
    return paired ? formatSpeedup(value) : QStringLiteral("≈ ") + formatSpeedup(value);
}

QString numberText(ColumnKind kind, double value)
{
    switch (kind) {
    case ColumnKind::Count:
        return formatCount(static_cast<qint64>(value));
    case ColumnKind::Money:
        return formatDollars(value);
    case ColumnKind::Minutes:
        return formatFixed(value, value < 10 ? 1 : 0);
    case ColumnKind::Share:
        return QStringLiteral("%1 %").arg(formatFixed(100 * value, 0));
    default:
        return formatSpeedup(value);
    }
}

/// Digits count as the number that they make, so that "s2" stands before "s10".
int compareTexts(QStringView a, QStringView b)
{
    const auto isDigit = [](QChar c) { return c >= u'0' && c <= u'9'; };
    qsizetype i = 0;
    qsizetype k = 0;
    while (i < a.size() && k < b.size()) {
        const qsizetype beginA = i;
        const qsizetype beginB = k;
        while (i < a.size() && isDigit(a[i]))
            ++i;
        while (k < b.size() && isDigit(b[k]))
            ++k;
        if (i > beginA && k > beginB) {
            QStringView numberA = a.mid(beginA, i - beginA);
            QStringView numberB = b.mid(beginB, k - beginB);
            while (numberA.size() > 1 && numberA[0] == u'0')
                numberA = numberA.mid(1);
            while (numberB.size() > 1 && numberB[0] == u'0')
                numberB = numberB.mid(1);
            if (numberA.size() != numberB.size())
                return numberA.size() < numberB.size() ? -1 : 1;
            if (const int order = numberA.compare(numberB); order != 0)
                return order;
            continue;
        }
        i = beginA;
        k = beginB;
        if (const int order = a.mid(i, 1).compare(b.mid(k, 1), Qt::CaseInsensitive); order != 0)
            return order;
        ++i;
        ++k;
    }
    if (i < a.size() || k < b.size())
        return i < a.size() ? 1 : -1;
    return a.compare(b);
}

CompareSum sumOfTexts(const CompareColumn &column, const std::vector<const ComparedRun *> &runs)
{
    std::set<QString> texts;
    CompareSum sum;
    for (const ComparedRun *run : runs) {
        const QVariant value = column.value(*run);
        texts.insert(value.toString());
        sum.of += value.isValid() ? 1 : 0;
    }
    sum.different = static_cast<int>(texts.size());
    if (texts.size() == 1 && sum.of > 0)
        sum.value = *texts.begin();
    return sum;
}

CompareSum meanOfSuccesses(const CompareColumn &column, const std::vector<const ComparedRun *> &runs)
{
    CompareSum sum;
    double logarithms = 0;
    for (const ComparedRun *run : runs) {
        const double value = (run->*column.figure).value;
        // What a root has does not depend on how its run went.
        if (value <= 0 || (!run->isSuccess() && column.figure != &ComparedRun::root))
            continue;
        logarithms += std::log(value);
        ++sum.of;
    }
    if (sum.of > 0)
        sum.value = std::exp(logarithms / sum.of);
    return sum;
}

} // namespace

std::vector<CompareColumn> compareColumns(const std::vector<ComparedRun> &runs)
{
    std::vector<CompareColumn> columns;
    addNames(columns);
    addSpeedups(columns);
    addAmounts(columns);
    addSettings(columns, runs);
    return columns;
}

const CompareColumn *findColumn(const std::vector<CompareColumn> &columns, const QString &id)
{
    const auto found = std::find_if(columns.begin(), columns.end(), [&](const CompareColumn &column) {
        return column.id.compare(id, Qt::CaseInsensitive) == 0;
    });
    return found == columns.end() ? nullptr : &*found;
}

QStringList defaultCompareColumns()
{
    return {QStringLiteral("run"),        QStringLiteral("state"),        QStringLiteral("policy"),
            QStringLiteral("option.arm"), QStringLiteral("gain"),         QStringLiteral("final_speedup"),
            QStringLiteral("best"),       QStringLiteral("root_speedup"), QStringLiteral("correct"),
            QStringLiteral("questions"),  QStringLiteral("dollars"),      QStringLiteral("workload"),
            QStringLiteral("platform"),   QStringLiteral("minutes"),      QStringLiteral("model"),
            QStringLiteral("experiment")};
}

QString shownValue(const CompareColumn &column, const ComparedRun &run)
{
    const QVariant value = column.value(run);
    if (!value.isValid())
        return QStringLiteral("–");
    if (column.kind == ColumnKind::Text)
        return value.toString();
    if (column.kind == ColumnKind::Speedup)
        return factorText(value.toDouble(), (run.*column.figure).paired);
    return numberText(column.kind, value.toDouble());
}

QString exactValue(const QVariant &value)
{
    if (value.typeId() == QMetaType::Double)
        return QString::fromStdString(shortestText(value.toDouble()));
    return value.toString();
}

CompareSum sumOf(const CompareColumn &column, const std::vector<const ComparedRun *> &runs)
{
    if (column.kind == ColumnKind::Text)
        return sumOfTexts(column, runs);
    if (column.kind == ColumnKind::Speedup)
        return meanOfSuccesses(column, runs);
    CompareSum sum;
    double total = 0;
    double whole = 0;
    for (const ComparedRun *run : runs) {
        const QVariant value = column.value(*run);
        if (!value.isValid() || column.kind == ColumnKind::Factor)
            continue;
        ++sum.of;
        const run::Summary &summary = run->run->summary;
        total += column.kind == ColumnKind::Share ? summary.valid : value.toDouble();
        whole += summary.valid + summary.failed + summary.wrappers;
    }
    if (sum.of > 0)
        sum.value = column.kind == ColumnKind::Share ? total / whole : total;
    return sum;
}

QString shownSum(const CompareColumn &column, const CompareSum &sum, int runs)
{
    if (column.kind == ColumnKind::Text)
        return sum.value.isValid() ? sum.value.toString()
               : sum.of > 0        ? columnText("%1 different").arg(sum.different)
                                   : QString();
    if (!sum.value.isValid())
        return column.kind == ColumnKind::Speedup ? columnText("– (0/%1)").arg(runs) : QString();
    const QString text = numberText(column.kind, sum.value.toDouble());
    return column.kind == ColumnKind::Speedup ? QStringLiteral("%1 (%2/%3)").arg(text).arg(sum.of).arg(runs)
                                              : text;
}

int compareValues(const QVariant &a, const QVariant &b)
{
    const bool isText = a.typeId() == QMetaType::QString || b.typeId() == QMetaType::QString;
    if (!isText)
        return a.toDouble() < b.toDouble() ? -1 : a.toDouble() > b.toDouble() ? 1 : 0;
    return compareTexts(a.toString(), b.toString());
}

} // namespace klineage::ui
