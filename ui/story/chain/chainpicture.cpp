// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/chain/chainpicture.h"

#include "ui/style/format.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>
#include <limits>

namespace klineage::ui {

namespace {

constexpr double barWidth = 0.18;    // of a step
constexpr double attemptRoom = 0.42; // of a step, for each attempt between two states
constexpr double leastDecades = 0.3;
constexpr double fadedTo = 0.28;
constexpr double branchOpacity = 0.6;
constexpr double aboveBar = 12; // pixels, so that no mark on the way is in the way
constexpr int titleLines = 6;   // a title that is cut says less than none
constexpr int stepPriority = 100;
constexpr int latencyPriority = 40;
constexpr int attemptPriority = 20;

using Weight = TextRun::Weight;
using Role = Ink::Role;

QString pictureText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::ChainPicture", text);
}

Ink inkOf(Tone tone)
{
    switch (tone) {
    case Tone::Good:
        return {Role::Good};
    case Tone::Warn:
        return {Role::Warn};
    case Tone::Bad:
        return {Role::Bad};
    case Tone::Accent:
        return {Role::Accent};
    case Tone::Neutral:
        break;
    }
    return {Role::Dim};
}

/// Makes a waterfall, part by part.
class Waterfall
{
public:
    Waterfall(const Chain &chain, int upTo)
        : m_chain(chain)
        , m_upTo(upTo < 0 ? std::numeric_limits<int>::max() : upTo)
    {}

    Picture make()
    {
        measure();
        addAxes();
        addPoints();
        for (const ChainAttempt &attempt : m_chain.attempts)
            addAttempt(attempt);
        for (const ChainAttempt &branch : m_chain.branches)
            addAttempt(branch, true);
        addWalk();
        addLegend();
        addTable();
        return std::move(m_picture);
    }

private:
    /// Between two states there is more room where more was tried.
    void measure()
    {
        std::vector<int> tried(m_chain.points.size(), 0);
        for (const ChainAttempt &attempt : m_chain.attempts)
            ++tried[attempt.parent];
        double x = 0;
        for (const int count : tried) {
            m_x.push_back(x);
            x += std::max(1.0, attemptRoom * (count + 1));
        }
        m_x.push_back(x);
        const bool isTriedFromLast =
            (!tried.empty() && tried.back() > 0)
            || std::any_of(m_chain.branches.begin(), m_chain.branches.end(), [&](const ChainAttempt &branch) {
                   return branch.parent + 1 == m_chain.points.size();
               });
        double low = std::numeric_limits<double>::max();
        double high = 0;
        const auto include = [&](double ns) {
            if (ns <= 0)
                return;
            low = std::min(low, ns);
            high = std::max(high, ns);
        };
        include(m_chain.referenceNs);
        for (const ChainPoint &point : m_chain.points)
            include(point.ns);
        for (const auto *list : {&m_chain.attempts, &m_chain.branches}) {
            for (const ChainAttempt &attempt : *list)
                include(attempt.ns);
        }
        m_isTimed = high > 0;
        m_low = m_isTimed ? std::log10(low) : 3;
        m_high = m_isTimed ? std::log10(high) : 6;
        const double decades = std::max(m_high - m_low, leastDecades);
        m_shelf = m_low - 0.18 * decades;
        const auto hasNone = [](const auto &each) { return each.ns <= 0; };
        const bool hasShelf = std::any_of(m_chain.points.begin(), m_chain.points.end(), hasNone)
                              || std::any_of(m_chain.attempts.begin(), m_chain.attempts.end(), hasNone)
                              || std::any_of(m_chain.branches.begin(), m_chain.branches.end(), hasNone);
        if (m_isTimed && hasShelf)
            m_picture.yFrom = m_low - 0.10 * decades;
        const double right = m_x.size() < 2 ? 1 : isTriedFromLast ? x + 0.1 : m_x[m_x.size() - 2] + 0.62;
        m_picture.world = QRectF(QPointF(-0.62, m_low - (hasShelf ? 0.26 : 0.16) * decades),
                                 QPointF(right, m_high + 0.32 * decades));
        m_picture.mostPixels = {260, 0};
    }

    [[nodiscard]] double xOf(double place) const
    {
        const auto from = static_cast<std::size_t>(place);
        return m_x[from] + (place - std::floor(place)) * (m_x[from + 1] - m_x[from]);
    }

    void addAxes()
    {
        m_picture.name = pictureText("Waterfall of %1").arg(m_chain.name);
        m_picture.title = title();
        if (m_isTimed) {
            m_picture.y.kind = PictureAxis::Kind::Latency;
            m_picture.y.title = m_chain.device.isEmpty()
                                    ? pictureText("Latency, logarithmic")
                                    : pictureText("Latency on %1, logarithmic").arg(m_chain.device);
        }
        m_picture.x.kind = PictureAxis::Kind::Names;
        for (std::size_t i = 0; i < m_chain.points.size(); ++i)
            m_picture.x.names.push_back({m_x[i], m_chain.points[i].id, m_chain.points[i].category});
        if (m_chain.referenceNs > 0)
            m_picture.guides.push_back(
                {Qt::Horizontal,
                 std::log10(m_chain.referenceNs),
                 m_chain.reference + QLatin1Char('\n') + formatLatency(m_chain.referenceNs),
                 {Role::Dim}});
        if (m_picture.yFrom) // its name stands below the line
            m_picture.guides.push_back({Qt::Horizontal,
                                        *m_picture.yFrom,
                                        QLatin1Char('\n') + pictureText("no latency"),
                                        {Role::Dim},
                                        Qt::SolidLine});
    }

    [[nodiscard]] QString title() const
    {
        const ChainPoint *first = m_chain.firstTimed();
        const ChainPoint *last = m_chain.lastTimed();
        if (!first || !last)
            return pictureText("%1: nothing was timed yet").arg(m_chain.name);
        QString text =
            pictureText("%1: %2 %3 → %4 %5")
                .arg(m_chain.name, first->id, formatLatency(first->ns), last->id, formatLatency(last->ns));
        if (m_chain.toReference.value > 0)
            text += pictureText(" · %1 %2, paired")
                        .arg(formatSpeedup(m_chain.toReference.value), m_chain.reference);
        return text;
    }

    void addPoints()
    {
        const ChainPoint *last = m_chain.lastTimed();
        bool isFirst = true;
        double before = m_high; // log10 of the last state that was timed
        double beforeX = 0;
        for (std::size_t i = 0; i < m_chain.points.size(); ++i) {
            const ChainPoint &point = m_chain.points[i];
            const bool isFaded = static_cast<int>(i) > m_upTo;
            const double fade = isFaded ? fadedTo : 1;
            const double y = point.ns > 0 ? std::log10(point.ns) : m_isTimed ? m_shelf : m_high;
            const int item = addItem(point.row, point.says);
            m_pointItems.push_back(item);
            if (point.ns > 0 && !isFirst) {
                m_picture.lines.push_back({{{beforeX, before}, {m_x[i], before}},
                                           Ink{Role::Dim}.faded(fade),
                                           Qt::SolidLine,
                                           1.2,
                                           false});
                const QRectF fall =
                    QRectF(QPointF(m_x[i] - barWidth / 2, before), QPointF(m_x[i] + barWidth / 2, y))
                        .normalized();
                const Ink ink = point.speedup.value > 0 ? inkOf(point.tone) : Ink{Role::Dim};
                m_picture.bars.push_back({fall, ink.faded(fade * 0.75), false, item});
            }
            const bool isElsewhere = !point.elsewhere.isEmpty();
            const Glyph glyph = !point.isGated   ? Glyph::Ungated
                                : isElsewhere    ? Glyph::Dot
                                : point.ns <= 0  ? Glyph::Crossed
                                : &point == last ? Glyph::Best
                                                 : Glyph::Disc;
            const Ink ink = &point == last                                   ? Ink{Role::Good}
                            : point.isGated && point.ns <= 0 && !isElsewhere ? Ink{Role::Bad}
                            : point.tone == Tone::Neutral                    ? Ink{Role::Dim}
                                                                             : inkOf(point.tone);
            m_picture.marks.push_back({{m_x[i], y}, glyph, ink.faded(fade), item});
            if (!isFaded)
                addStepText(point, m_x[i], isFirst || point.ns <= 0 ? y : std::max(before, y), y, i);
            if (point.ns > 0) {
                before = y;
                isFirst = false;
                beforeX = m_x[i];
            }
        }
    }

    /// The step's name above its bar; where there is no place for all of it, only what it brought.
    void addStepText(const ChainPoint &point, double x, double top, double y, std::size_t i)
    {
        const bool isCurrent = static_cast<int>(i) == m_upTo;
        const int gain =
            point.speedup.value > 0 ? static_cast<int>(20 * std::abs(std::log10(point.speedup.value))) : 0;
        const QString head = point.step.isEmpty() ? point.id : point.step;
        const Ink headInk =
            point.step.isEmpty() || point.tone == Tone::Neutral ? Ink{Role::Text} : inkOf(point.tone);
        PictureText whole;
        whole.at = {x, top};
        whole.sides = {Qt::AlignTop, Qt::AlignTop | Qt::AlignRight};
        whole.width = 0.96;
        whole.gap = aboveBar;
        whole.priority = stepPriority + gain + (isCurrent ? 1000 : 0);
        whole.runs = {{head, headInk, Weight::Strong, 1, 0},
                      {point.title, {Role::Text}, Weight::Small, titleLines, 52},
                      {point.card, {Role::Accent}, Weight::Small, 4, 62},
                      {point.bound.isEmpty() ? QString() : pictureText("%1-bound").arg(point.bound),
                       {Role::Dim},
                       Weight::Small,
                       2,
                       62}};
        const int wholeAt = static_cast<int>(m_picture.texts.size());
        m_picture.texts.push_back(whole);
        PictureText medium = whole;
        medium.runs.resize(2);
        medium.priority = stepPriority - 20 + gain;
        medium.unless = wholeAt;
        medium.sides.push_back(Qt::AlignRight | Qt::AlignBottom);
        medium.sides.push_back(Qt::AlignTop | Qt::AlignLeft);
        m_picture.texts.push_back(medium);
        PictureText little;
        little.at = {x, y};
        little.sides = {Qt::AlignRight | Qt::AlignTop, Qt::AlignTop, Qt::AlignRight | Qt::AlignBottom};
        little.priority = stepPriority - 40 + gain;
        little.runs = {{head, headInk, Weight::Small, 1, 0}};
        little.unless = wholeAt + 1;
        m_picture.texts.push_back(little);
        if (point.ns <= 0)
            return;
        PictureText latency;
        latency.at = {x, y};
        latency.sides = {Qt::AlignBottom, Qt::AlignBottom | Qt::AlignLeft, Qt::AlignBottom | Qt::AlignRight};
        latency.priority = latencyPriority;
        latency.runs = {{formatLatency(point.ns), {Role::Dim}, Weight::Small, 1, 0}};
        m_picture.texts.push_back(latency);
    }

    /// A branch has no name, and says what it is when it is pointed at.
    void addAttempt(const ChainAttempt &attempt, bool isBranch = false)
    {
        const bool isFaded = static_cast<int>(attempt.parent) > m_upTo
                             || (static_cast<int>(attempt.parent) == m_upTo
                                 && m_upTo + 1 < static_cast<int>(m_chain.points.size()));
        const Ink ink = inkOf(attempt.tone).faded(isFaded ? fadedTo : isBranch ? branchOpacity : 1);
        const int item = addItem(attempt.row, attempt.says);
        const QPointF at(xOf(attempt.place), attempt.ns > 0 ? std::log10(attempt.ns) : m_shelf);
        const int mark = static_cast<int>(m_picture.marks.size());
        m_picture.marks.push_back({at, attempt.glyph, ink, item, isBranch && attempt.elsewhere.isEmpty()});
        m_picture.edges.push_back({static_cast<int>(attempt.parent), mark,
                                   Ink{Role::Faint}.faded(isFaded    ? fadedTo
                                                          : isBranch ? 0.45
                                                                     : 0.8),
                                   true});
        m_attemptItems.push_back({attempt.place, item});
        const bool isElsewhere = !attempt.elsewhere.isEmpty();
        if (isFaded || (isBranch && !isElsewhere))
            return;
        PictureText name;
        name.at = at;
        name.sides = {Qt::AlignTop, Qt::AlignBottom, Qt::AlignRight};
        if (attempt.ns <= 0) // the line above is no place for it
            name.sides = {Qt::AlignRight, Qt::AlignBottom, Qt::AlignLeft};
        name.width = 0.8;
        name.priority = attemptPriority;
        name.runs = {{isBranch ? pictureText("tried") : attempt.id, {Role::Dim}, Weight::Small, 1, 0},
                     {isBranch ? QString() : attempt.title, {Role::Dim}, Weight::Small, 2, 130},
                     {attempt.verdict, ink, Weight::Small, 2, isElsewhere ? 60.0 : 190.0}};
        m_picture.texts.push_back(name);
        PictureText little = name;
        little.runs.resize(1);
        little.width = 0;
        little.priority = attemptPriority - 10;
        little.unless = static_cast<int>(m_picture.texts.size()) - 1;
        m_picture.texts.push_back(little);
    }

    int addItem(const QString &row, const QString &says)
    {
        m_picture.items.push_back({m_chain.key, row, says});
        return static_cast<int>(m_picture.items.size()) - 1;
    }

    void addWalk()
    {
        std::vector<std::pair<double, int>> order = m_attemptItems;
        for (std::size_t i = 0; i < m_pointItems.size(); ++i)
            order.push_back({static_cast<double>(i), m_pointItems[i]});
        std::stable_sort(order.begin(), order.end(),
                         [](const auto &a, const auto &b) { return a.first < b.first; });
        for (const auto &[place, item] : order)
            m_picture.walk.push_back(item);
    }

    void addLegend()
    {
        using Sign = LegendEntry::Sign;
        const auto has = [this](Glyph glyph) {
            return std::any_of(m_picture.marks.begin(), m_picture.marks.end(),
                               [glyph](const PictureMark &mark) { return mark.glyph == glyph; });
        };
        const auto add = [&](Glyph glyph, Role role, const QString &text) {
            if (has(glyph))
                m_picture.legend.push_back({text, {role}, Sign::Mark, Qt::SolidLine, glyph});
        };
        m_picture.legend.push_back(
            {pictureText("step, × its parent, paired"), {Role::Good}, Sign::Bar, Qt::SolidLine, Glyph::Disc});
        add(Glyph::Rejected, Role::Warn, pictureText("tried, not taken"));
        add(Glyph::Crossed, Role::Bad, pictureText("failed"));
        add(Glyph::Triangle, Role::Bad, pictureText("failed"));
        add(Glyph::Cross, Role::Warn, pictureText("wrapper"));
        add(Glyph::Diamond, Role::Accent, pictureText("audited"));
        add(Glyph::Branch, Role::Accent, pictureText("not named"));
        add(Glyph::Ungated, Role::Dim, pictureText("not gated"));
        add(Glyph::Dot, Role::Dim, pictureText("on another device"));
    }

    void addTable()
    {
        PictureTable &table = m_picture.table;
        table.headers = {pictureText("State"),      pictureText("Title"),
                         pictureText("Tried from"), pictureText("Category"),
                         pictureText("Card"),       pictureText("Bound by"),
                         pictureText("Latency"),    pictureText("× parent, paired"),
                         pictureText("low"),        pictureText("high"),
                         pictureText("Verdict")};
        table.names = {"state",       "title",        "tried_from", "category",
                       "card",        "bound_by",     "latency_ns", "speedup_to_parent_paired",
                       "speedup_low", "speedup_high", "verdict"};
        const auto latency = [](double ns) {
            return ns > 0 ? PictureTable::Cell{formatLatency(ns), ns} : PictureTable::Cell{};
        };
        const auto ratio = [](double value) {
            return value > 0 ? PictureTable::Cell{formatSpeedup(value), value} : PictureTable::Cell{};
        };
        for (const int item : m_picture.walk) {
            const auto point = std::find(m_pointItems.begin(), m_pointItems.end(), item);
            if (point != m_pointItems.end()) {
                const ChainPoint &p = m_chain.points[static_cast<std::size_t>(point - m_pointItems.begin())];
                table.rows.push_back({{{p.id},
                                       {p.title},
                                       {},
                                       {p.category},
                                       {p.card},
                                       {p.bound},
                                       latency(p.ns),
                                       ratio(p.speedup.value),
                                       ratio(p.speedup.low),
                                       ratio(p.speedup.high),
                                       {p.ns > 0                 ? pictureText("correct")
                                        : !p.elsewhere.isEmpty() ? p.elsewhere
                                        : p.isGated              ? pictureText("not timed")
                                                                 : pictureText("not gated yet")}},
                                      item});
                continue;
            }
            const QString &row = m_picture.items[static_cast<std::size_t>(item)].row;
            for (const auto *list : {&m_chain.attempts, &m_chain.branches}) {
                for (const ChainAttempt &a : *list) {
                    if (a.row == row)
                        table.rows.push_back({{{a.id},
                                               {a.title},
                                               {m_chain.points[a.parent].id},
                                               {},
                                               {},
                                               {},
                                               latency(a.ns),
                                               {},
                                               {},
                                               {},
                                               {a.verdict}},
                                              item});
                }
            }
        }
    }

    const Chain &m_chain;
    int m_upTo;
    Picture m_picture;
    std::vector<double> m_x; ///< of the points, and one more
    std::vector<int> m_pointItems;
    std::vector<std::pair<double, int>> m_attemptItems; ///< by place
    double m_low = 0;
    double m_high = 0;
    double m_shelf = 0;     ///< where what has no latency stands
    bool m_isTimed = false; ///< anything is
};

/// A point on the way back.
struct Lost {
    const ChainPoint *point = nullptr;
    double y = 0; ///< log10 of T_K* / T
};

void addDrop(Picture &picture, const Chain &chain, const Lost &from, const Lost &to, double x)
{
    // What is taken away on the way from a state back to its predecessor is the step into that state.
    const ChainPoint &gone = *from.point;
    picture.items.push_back(
        {chain.key, gone.row,
         pictureText("without %1: %2 → %3 · %4")
             .arg(gone.title, formatLatency(gone.ns), formatLatency(to.point->ns), gone.says)});
    const int item = static_cast<int>(picture.items.size()) - 1;
    picture.lines.push_back({{{x - 1, from.y}, {x, from.y}}, {Role::Dim}, Qt::SolidLine, 1.2, false});
    picture.bars.push_back(
        {QRectF(QPointF(x - barWidth / 2, from.y), QPointF(x + barWidth / 2, to.y)).normalized(),
         to.y < from.y ? Ink{Role::Bad}.faded(0.75) : Ink{Role::Good}.faded(0.75), false, item});
    PictureText text;
    text.at = {x, std::max(from.y, to.y)};
    text.sides = {Qt::AlignTop, Qt::AlignTop | Qt::AlignRight};
    text.width = 0.96;
    text.priority = stepPriority + static_cast<int>(20 * std::abs(from.y - to.y));
    text.runs = {
        {gone.step.isEmpty() ? gone.id : QStringLiteral("÷ ") + gone.step, {Role::Bad}, Weight::Strong, 1, 0},
        {gone.card.isEmpty() ? gone.title : gone.card, {Role::Text}, Weight::Small, 3, 52}};
    picture.texts.push_back(text);
    PictureText little = text;
    little.runs.resize(1);
    little.priority -= 20;
    little.unless = static_cast<int>(picture.texts.size()) - 1;
    picture.texts.push_back(little);
    picture.walk.push_back(item);
    picture.table.rows.push_back(
        {{{gone.id},
          {gone.title},
          {gone.card},
          {gone.step, gone.speedup.value > 0 ? QVariant(gone.speedup.value) : QVariant()},
          {to.point->id},
          {formatLatency(to.point->ns), to.point->ns}},
         item});
}

} // namespace

Picture waterfall(const Chain &chain, int upTo)
{
    if (!chain.points.empty())
        return Waterfall(chain, upTo).make();
    Picture empty;
    empty.name = pictureText("Waterfall");
    empty.message = pictureText(
        "There is no state yet. A lineage.toml lists them under [[state]]; a run has one as soon as its root was gated.");
    return empty;
}

Picture deoptimizationTrace(const Chain &chain)
{
    Picture picture;
    picture.name = pictureText("Deoptimization of %1").arg(chain.name);
    std::vector<Lost> way;
    const ChainPoint *best = chain.lastTimed();
    for (auto point = chain.points.rbegin(); point != chain.points.rend(); ++point) {
        if (point->ns > 0)
            way.push_back({&*point, std::log10(best->ns / point->ns)});
    }
    if (way.size() < 2) {
        picture.message = pictureText("A trace needs two states that were timed.");
        return picture;
    }
    picture.title =
        pictureText(
            "%1 taken apart: speed as a part of %2's, medians, not paired · each drop: the step that is taken away")
            .arg(chain.name, best->id);
    picture.y.kind = PictureAxis::Kind::Ratio;
    picture.y.title = pictureText("Speed, a part of %1's").arg(best->id);
    picture.x.kind = PictureAxis::Kind::Names;
    picture.table.headers = {pictureText("Taken away"), pictureText("Title"),
                             pictureText("Card"),       pictureText("× parent, paired"),
                             pictureText("Left"),       pictureText("Latency left")};
    picture.table.names = {"taken_away", "title",          "card", "speedup_to_parent_paired",
                           "left",       "latency_left_ns"};
    double low = 0;
    double high = 0;
    for (std::size_t i = 0; i < way.size(); ++i) {
        const auto x = static_cast<double>(i);
        low = std::min(low, way[i].y);
        high = std::max(high, way[i].y);
        picture.x.names.push_back({x, way[i].point->id, way[i].point->category});
        if (i > 0)
            addDrop(picture, chain, way[i - 1], way[i], x);
    }
    for (std::size_t i = 0; i < way.size(); ++i) {
        picture.items.push_back({chain.key, way[i].point->row, way[i].point->says});
        picture.marks.push_back({{static_cast<double>(i), way[i].y},
                                 i == 0 ? Glyph::Best : Glyph::Disc,
                                 i == 0 ? Ink{Role::Good} : Ink{Role::Dim},
                                 static_cast<int>(picture.items.size()) - 1});
    }
    const double decades = std::max(high - low, leastDecades);
    picture.world = QRectF(QPointF(-0.62, low - 0.08 * decades),
                           QPointF(static_cast<double>(way.size()) - 0.38, high + 0.28 * decades));
    picture.mostPixels = {260, 0};
    picture.legend.push_back({pictureText("what the step had won, ÷ paired"),
                              {Role::Bad},
                              LegendEntry::Sign::Bar,
                              Qt::SolidLine,
                              Glyph::Disc});
    return picture;
}

} // namespace klineage::ui
