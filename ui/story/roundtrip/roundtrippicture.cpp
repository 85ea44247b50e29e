// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/roundtrip/roundtrippicture.h"

#include "ui/models/lineagerow.h"
#include "ui/style/format.h"
#include "ui/style/status.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>

namespace klineage::ui {

namespace {

using Role = Ink::Role;
using Sign = LegendEntry::Sign;

constexpr double rowsHeight = 0.72;  ///< of a lane, for its trials
constexpr double headHeight = 0.45;  ///< in lanes, for the names of what stands across them
constexpr double margin = 0.09;      ///< of the speeds' range, before them
constexpr double wordsMargin = 0.16; ///< of the same, after them: for the words of the fastest
constexpr double withoutSpeed = 0.3; ///< of the same, left of the axis
constexpr double leastRange = 0.1;
constexpr double capHeight = 0.16; ///< in rows, of the ends of an interval
constexpr int decimals = 3;

QString roundtripText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::RoundtripPicture", text);
}

QString utf8Text(const std::string &text)
{
    return QString::fromStdString(text);
}

QString armWords(const std::string &arm)
{
    return arm == "full"        ? roundtripText("with its cards")
           : arm == "no-blocks" ? roundtripText("cards without building blocks")
           : arm == "none"      ? roundtripText("without cards")
                                : utf8Text(arm);
}

QString outcomeWords(const std::string &outcome)
{
    if (outcome == "recovered")
        return roundtripText("recovered");
    if (outcome == "short")
        return roundtripText("fell short");
    if (outcome == "failed")
        return roundtripText("no candidate");
    if (outcome == gate::toString(gate::VerdictStatus::CompileError))
        return roundtripText("did not compile");
    const auto status = gate::verdictStatusFromString(outcome);
    return status ? statusStyle(*status).word : utf8Text(outcome);
}

QString authorWords(const std::string &provider)
{
    return provider == "manual" ? roundtripText("manual, by files") : utf8Text(provider);
}

QString dateOf(const std::string &time)
{
    return time.size() < 16
               ? utf8Text(time)
               : roundtripText("%1 %2 UTC").arg(utf8Text(time.substr(0, 10)), utf8Text(time.substr(11, 5)));
}

QString shareText(double share)
{
    return formatFixed(share, decimals) + QStringLiteral("×");
}

bool isRecovered(const run::RoundtripTry &made)
{
    return made.line.outcome == "recovered";
}

/// The speeds that the axis must have room for, and what is among the tries.
struct Range {
    double low = run::recoveredShare;
    double high = 1;
    bool isShort = false; ///< at the last try
    bool isRepaired = false;
    bool isWrong = false;
    bool isSilent = false;

    void add(double value)
    {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    void add(const run::RoundtripTry &made)
    {
        if (made.line.share)
            add(*made.line.share);
        if (made.line.share && made.speedup) {
            add(made.speedup->low);
            add(made.speedup->high);
        }
        isWrong = isWrong || !made.line.share;
    }
    [[nodiscard]] bool isWithout() const { return isWrong || isSilent; } ///< something has no speed
    [[nodiscard]] double length() const { return std::max(high - low, leastRange); }
};

Range rangeOf(const run::RoundtripRecord &record)
{
    Range range;
    for (const run::RoundtripArm &arm : record.arms) {
        for (const run::RoundtripTrial &trial : arm.trials) {
            for (const run::RoundtripTry &made : trial.tries)
                range.add(made);
            if (trial.tries.empty())
                range.isSilent = true;
            else if (trial.tries.back().line.share && !isRecovered(trial.tries.back()))
                range.isShort = true;
            range.isRepaired = range.isRepaired || trial.tries.size() > 1;
        }
    }
    return range;
}

class RoundtripDrawing
{
public:
    RoundtripDrawing(const lineage::Lineage &lineage, const run::RoundtripRecord &record)
        : m_key(QLatin1String(roundtripKey) + utf8Text(lineage.key()))
        , m_last(utf8Text(run::roundtripGoal(lineage, record)))
        , m_record(record)
        , m_range(rangeOf(record))
    {
        for (const run::RoundtripArm &arm : record.arms)
            m_rows = std::max(m_rows, arm.trials.size());
    }

    Picture draw(const QString &name)
    {
        addFrame(name);
        for (std::size_t lane = 0; lane < m_record.arms.size(); ++lane)
            addArm(m_record.arms[lane], static_cast<double>(lane));
        return std::move(m_picture);
    }

private:
    [[nodiscard]] double withoutAt() const { return m_axisFrom - withoutSpeed * 0.88 * m_range.length(); }

    void addFrame(const QString &name)
    {
        m_picture.name = roundtripText("Roundtrips of %1").arg(name);
        m_picture.title =
            roundtripText("%1 · what authors came to who were given its first state alone: speed, %2 = 1")
                .arg(name, m_last);
        m_picture.x.kind = PictureAxis::Kind::Linear;
        m_picture.x.title = roundtripText("Share of the speed of %1, paired").arg(m_last);
        m_picture.y.kind = PictureAxis::Kind::Names;
        m_axisFrom = m_range.low - margin * m_range.length();
        const double left = m_axisFrom - (m_range.isWithout() ? withoutSpeed * m_range.length() : 0);
        const double lanes = static_cast<double>(m_record.arms.size());
        m_picture.world = QRectF(QPointF(left, 0.5 - lanes),
                                 QPointF(m_range.high + wordsMargin * m_range.length(), 0.5 + headHeight));
        m_picture.mostPixels = {0, 170};
        const auto across = [this](double at, const QString &text, const Ink &ink, Qt::PenStyle dash) {
            m_picture.guides.push_back({Qt::Vertical, at, text, ink, dash});
        };
        across(1, roundtripText("%1 = 1").arg(m_last), {Role::Dim}, Qt::SolidLine);
        across(run::recoveredShare, roundtripText("%1: recovered").arg(formatFixed(run::recoveredShare, 1)),
               {Role::Good}, Qt::DashLine);
        if (m_range.isWithout()) {
            m_picture.xFrom = m_axisFrom;
            across(m_axisFrom, {}, {Role::Faint}, Qt::DotLine);
            across(left, roundtripText("no speed"), {Role::Dim}, Qt::NoPen);
        }
        const auto sign = [this](const QString &text, const Ink &ink, Glyph glyph) {
            m_picture.legend.push_back({text, ink, Sign::Mark, Qt::SolidLine, glyph});
        };
        sign(roundtripText("recovered"), {Role::Good}, Glyph::Disc);
        if (m_range.isShort)
            sign(roundtripText("fell short"), {Role::Warn}, Glyph::Ring);
        if (m_range.isRepaired)
            sign(roundtripText("first try, joined to the repair"), {Role::Dim}, Glyph::Ring);
        if (m_range.isWrong)
            sign(roundtripText("not correct"), {Role::Bad}, Glyph::Crossed);
        if (m_range.isSilent)
            sign(roundtripText("no reply recorded"), {Role::Dim}, Glyph::Ungated);
        m_picture.table.headers = {
            roundtripText("Arm"),     roundtripText("Trial"),     roundtripText("Try"),
            roundtripText("Outcome"), roundtripText("Speed"),     roundtripText("Low"),
            roundtripText("High"),    roundtripText("Device"),    roundtripText("Time"),
            roundtripText("Author"),  roundtripText("Recovered"), roundtripText("At first"),
            roundtripText("In words")};
        m_picture.table.names = {
            "arm",    "trial", "try",    "outcome",       "share_of_last_state",    "low",   "high",
            "device", "time",  "author", "arm_recovered", "arm_recovered_at_first", "reason"};
    }

    void addArm(const run::RoundtripArm &arm, double lane)
    {
        // Beside the lane the short one.
        const QString name = arm.arm == "no-blocks" ? roundtripText("cards, no blocks") : armWords(arm.arm);
        m_picture.y.names.push_back({-lane, name, {}});
        m_picture.guides.push_back({Qt::Horizontal, 0.5 - lane, {}, {Role::Border}, Qt::SolidLine});
        m_picture.guides.push_back({Qt::Horizontal, -lane, countText(arm), {Role::Text}, Qt::NoPen});
        const double step = rowsHeight / static_cast<double>(m_rows);
        for (std::size_t row = 0; row < arm.trials.size(); ++row)
            addTrial(arm, arm.trials[row], rowsHeight / 2 - lane - (static_cast<double>(row) + 0.5) * step,
                     step);
    }

    [[nodiscard]] static QString countText(const run::RoundtripArm &arm)
    {
        const auto percent = [](double share) { return QString::number(std::lround(100 * share)); };
        return roundtripText("%1 of %2 recovered, %3 at first")
                   .arg(arm.count.recovered)
                   .arg(arm.count.trials)
                   .arg(arm.count.first)
               + QLatin1Char('\n')
               + roundtripText("95 %: %1 – %2 %")
                     .arg(percent(arm.recovered.low), percent(arm.recovered.high));
    }

    void addTrial(const run::RoundtripArm &arm, const run::RoundtripTrial &trial, double y, double step)
    {
        if (trial.tries.empty()) {
            const QString words = roundtripText("no reply recorded");
            const int item = addItem(QStringLiteral("%1-t%2").arg(utf8Text(arm.arm)).arg(trial.trial),
                                     roundtripText("%1, trial %2: no reply is recorded; it is not counted")
                                         .arg(armWords(arm.arm))
                                         .arg(trial.trial));
            addMark({withoutAt(), y}, Glyph::Ungated, {Role::Dim}, item);
            addWords({withoutAt(), y}, Qt::AlignRight, words);
            addRow(arm, trial, nullptr, item, words);
            return;
        }
        int before = -1;
        for (std::size_t i = 0; i < trial.tries.size(); ++i) {
            const bool isLast = i + 1 == trial.tries.size();
            const int mark = addTry(arm, trial, trial.tries[i], isLast, y, step);
            if (before >= 0)
                m_picture.edges.push_back({before, mark, {Role::Dim}, false});
            before = mark;
        }
    }

    int addTry(const run::RoundtripArm &arm, const run::RoundtripTrial &trial, const run::RoundtripTry &made,
               bool isLast, double y, double step)
    {
        const QString row =
            QStringLiteral("%1-t%2.%3").arg(utf8Text(arm.arm)).arg(trial.trial).arg(made.line.number + 1);
        const int item = addItem(row, captionOf(arm, trial, made));
        addRow(arm, trial, &made, item, outcomeWords(made.line.outcome));
        const Ink ink = isRecovered(made) ? Ink{Role::Good}
                        : !isLast         ? Ink{Role::Dim}
                        : made.line.share ? Ink{Role::Warn}
                                          : Ink{Role::Bad};
        if (!made.line.share) {
            addWords({withoutAt(), y}, Qt::AlignRight, outcomeWords(made.line.outcome));
            return addMark({withoutAt(), y}, Glyph::Crossed, ink, item);
        }
        const double share = *made.line.share;
        const gate::Interval drawn = made.speedup.value_or(gate::Interval{share, share, share});
        if (made.speedup)
            addInterval(drawn, y, step, ink);
        if (isLast) { // at the side where no line leads to it, if there is room
            const bool isLess = trial.tries.size() > 1 && share < trial.tries.front().line.share.value_or(0);
            const QPointF left(std::min(drawn.low, share), y);
            const QPointF right(std::max(drawn.high, share), y);
            addWords(isLess ? left : right, isLess ? Qt::AlignLeft : Qt::AlignRight, shareText(share));
            addWords(isLess ? right : left, isLess ? Qt::AlignRight : Qt::AlignLeft, shareText(share),
                     static_cast<int>(m_picture.texts.size()) - 1);
        }
        return addMark({share, y}, isRecovered(made) ? Glyph::Disc : Glyph::Ring, ink, item);
    }

    void addInterval(const gate::Interval &interval, double y, double step, const Ink &ink)
    {
        const double cap = capHeight * step;
        m_picture.lines.push_back({{{interval.low, y}, {interval.high, y}}, ink, Qt::SolidLine, 1.6, false});
        for (const double end : {interval.low, interval.high})
            m_picture.lines.push_back({{{end, y - cap}, {end, y + cap}}, ink, Qt::SolidLine, 1.6, false});
    }

    int addItem(const QString &row, const QString &caption)
    {
        m_picture.items.push_back({m_key, row, caption});
        const int item = static_cast<int>(m_picture.items.size()) - 1;
        m_picture.walk.push_back(item);
        return item;
    }

    int addMark(const QPointF &at, Glyph glyph, const Ink &ink, int item)
    {
        m_picture.marks.push_back({at, glyph, ink, item});
        return static_cast<int>(m_picture.marks.size()) - 1;
    }

    /// unless: index of the text instead of which these stand.
    void addWords(const QPointF &at, Qt::Alignment side, const QString &text, int unless = -1)
    {
        PictureText words;
        words.at = at;
        words.sides = {side};
        words.gap = 8;
        words.runs = {{text, {Role::Text}, TextRun::Weight::Small, 1, 0}};
        words.unless = unless;
        m_picture.texts.push_back(std::move(words));
    }

    [[nodiscard]] QString captionOf(const run::RoundtripArm &arm, const run::RoundtripTrial &trial,
                                    const run::RoundtripTry &made) const
    {
        QStringList parts;
        parts << roundtripText("%1, trial %2, try %3: %4")
                     .arg(armWords(arm.arm))
                     .arg(trial.trial)
                     .arg(made.line.number + 1)
                     .arg(outcomeWords(made.line.outcome));
        if (made.line.share && made.speedup)
            parts << roundtripText("%1 of %2 (%3 – %4), paired with it in the same rounds")
                         .arg(shareText(*made.line.share), m_last, formatFixed(made.speedup->low, decimals),
                              formatFixed(made.speedup->high, decimals));
        else if (made.line.share)
            parts
                << roundtripText("%1 of %2; its trial is not there").arg(shareText(*made.line.share), m_last);
        if (!made.device.empty())
            parts << utf8Text(made.device);
        if (!made.time.empty())
            parts << dateOf(made.time);
        parts << roundtripText("author: %1").arg(authorWords(made.line.provider));
        QString caption = parts.join(QStringLiteral(" · "));
        if (!made.line.reason.empty())
            caption += QLatin1Char('\n') + utf8Text(made.line.reason);
        return caption;
    }

    void addRow(const run::RoundtripArm &arm, const run::RoundtripTrial &trial, const run::RoundtripTry *made,
                int item, const QString &outcome)
    {
        using Cell = PictureTable::Cell;
        const auto number = [](const std::optional<double> &value) {
            return value ? Cell{formatFixed(*value, decimals), *value} : Cell{};
        };
        const auto of = [&arm](int count) {
            return roundtripText("%1 of %2").arg(count).arg(arm.count.trials);
        };
        const bool isPaired = made && made->speedup;
        PictureTable::Row row{
            {{armWords(arm.arm)},
             {QString::number(trial.trial), trial.trial},
             made ? Cell{QString::number(made->line.number + 1), made->line.number + 1} : Cell{},
             {outcome},
             made ? number(made->line.share) : Cell{},
             isPaired ? number(made->speedup->low) : Cell{},
             isPaired ? number(made->speedup->high) : Cell{},
             {made ? utf8Text(made->device) : QString()},
             {made ? utf8Text(made->time) : QString()},
             {made ? authorWords(made->line.provider) : QString()},
             {of(arm.count.recovered)},
             {of(arm.count.first)},
             {made ? utf8Text(made->line.reason) : QString()}},
            item};
        m_picture.table.rows.push_back(std::move(row));
    }

    QString m_key;
    QString m_last;
    const run::RoundtripRecord &m_record;
    Range m_range;
    double m_axisFrom = 0;
    std::size_t m_rows = 1;
    Picture m_picture;
};

} // namespace

Picture roundtripPicture(const lineage::Lineage &lineage, const run::RoundtripRecord &record)
{
    const QString name = QStringLiteral("%1 · %2").arg(utf8Text(lineage.workload), lineageLabel(lineage));
    if (record.arms.empty()) {
        Picture empty;
        empty.name = roundtripText("Roundtrips of %1").arg(name);
        empty.message =
            roundtripText(
                "No roundtrip of this lineage is recorded. An author is given its first state, with its cards or without, and is to come "
                "to the last one's speed again.\n"
                "klineage-cli lineage roundtrip %1 --ask DIR writes the prompts.")
                .arg(utf8Text(lineage.key()));
        return empty;
    }
    return RoundtripDrawing(lineage, record).draw(name);
}

} // namespace klineage::ui
