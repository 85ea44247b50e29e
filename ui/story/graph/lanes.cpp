// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/graph/lanes.h"

#include "ui/plots/runtrace.h"
#include "ui/story/chain/chain.h"
#include "ui/style/format.h"

#include <QCoreApplication>
#include <QHash>
#include <QRegularExpression>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>

namespace klineage::ui {

namespace {

constexpr int turnRoom =
    6; ///< columns before a node that its lane is kept free, for the edge that leads to it

using Role = Ink::Role;

QString laneText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Lanes", text);
}

Ink toneInk(Tone tone)
{
    return tone == Tone::Good   ? Ink{Role::Good}
           : tone == Tone::Warn ? Ink{Role::Warn}
           : tone == Tone::Bad  ? Ink{Role::Bad}
                                : Ink{Role::Accent};
}

LaneNode nodeOf(const ChainPoint &point, int parent, bool isLast)
{
    LaneNode node;
    node.parent = parent;
    node.glyph = !point.isGated ? Glyph::Ungated : isLast ? Glyph::Best : Glyph::Disc;
    node.ink = isLast || point.tone == Tone::Good ? Ink{Role::Good} : Ink{Role::Dim};
    node.row = point.row;
    node.value = point.ns > 0 ? formatLatency(point.ns) : point.elsewhere;
    node.number = point.ns;
    node.label = point.id + QLatin1Char('\n') + (node.value.isEmpty() ? point.title : node.value);
    node.title = point.title;
    node.says = point.says;
    return node;
}

LaneNode nodeOf(const ChainAttempt &attempt, int parent)
{
    LaneNode node;
    node.parent = parent;
    node.isAside = true;
    node.glyph = attempt.glyph;
    node.ink = toneInk(attempt.tone);
    node.row = attempt.row;
    node.value = attempt.ns > 0 ? formatLatency(attempt.ns) : QString();
    node.number = attempt.ns;
    node.label = attempt.id + QLatin1Char('\n') + (node.value.isEmpty() ? attempt.verdict : node.value);
    node.title = attempt.title;
    node.says = attempt.says;
    return node;
}

/// Policies with islands name them in the titles of their steps.
int islandOf(const run::StepRecord &step)
{
    static const QRegularExpression island(QStringLiteral("\\bisland (\\d{1,4})\\b"));
    const QRegularExpressionMatch match = island.match(QString::fromStdString(step.title));
    return match.hasMatch() ? match.captured(1).toInt() : 0;
}

LaneNode nodeOfStep(const RunEntry &run, const run::StepRecord &step, int parent)
{
    const gate::Trial *trial = run.trialOf(step);
    const StatusStyle outcome = outcomeStyle(step.outcome);
    LaneNode node;
    node.parent = parent;
    node.island = islandOf(step);
    switch (traceKind(step.outcome)) {
    case RunTracePoint::Kind::Valid:
        node.glyph = Glyph::Disc;
        break;
    case RunTracePoint::Kind::Audited:
        node.glyph = Glyph::Diamond;
        break;
    case RunTracePoint::Kind::Wrapper:
        node.isAside = true;
        node.glyph = Glyph::Cross;
        break;
    case RunTracePoint::Kind::Failed:
        node.isAside = true;
        node.glyph = Glyph::Triangle;
        break;
    case RunTracePoint::Kind::Other:
        node.glyph = Glyph::Dot;
        break;
    }
    node.ink = toneInk(outcome.tone);
    node.row = QString::number(step.number);
    node.number = trial && trial->latencyNs.value > 0 ? trial->latencyNs.value : 0;
    node.value = node.number > 0 ? formatLatency(node.number) : QString();
    node.title = QString::fromStdString(step.title);
    node.label =
        node.row + QLatin1Char('\n') + (step.speedup > 0 ? formatSpeedup(step.speedup) : outcome.word);
    node.says = laneText("step %1 · %2: %3 · %4")
                    .arg(node.row, QString::fromStdString(step.action), outcome.word, node.title);
    if (step.speedup > 0)
        node.says += QStringLiteral(" · ") + formatSpeedup(step.speedup);
    return node;
}

struct Heirs {
    std::vector<int> heir; ///< who goes on in the lane of a node; -1: nobody
    std::vector<int> end;  ///< the last node on the way on from a node
};

Heirs heirsOf(const std::vector<LaneNode> &nodes)
{
    const std::size_t count = nodes.size();
    std::vector<int> size(count, 1);
    Heirs heirs{std::vector<int>(count, -1), std::vector<int>(count, 0)};
    for (std::size_t i = count; i-- > 0;) {
        const int parent = nodes[i].parent;
        if (parent < 0)
            continue;
        const auto p = static_cast<std::size_t>(parent);
        size[p] += size[i];
        const int rival = heirs.heir[p];
        // The earlier one of equals; it is looked at later.
        if (nodes[p].island == nodes[i].island && !nodes[i].isAside
            && (rival < 0 || size[i] >= size[static_cast<std::size_t>(rival)]))
            heirs.heir[p] = static_cast<int>(i);
    }
    for (std::size_t i = count; i-- > 0;)
        heirs.end[i] =
            heirs.heir[i] < 0 ? static_cast<int>(i) : heirs.end[static_cast<std::size_t>(heirs.heir[i])];
    return heirs;
}

/// The lanes of one island: which are free, and when those that are not will be.
class FreeLanes
{
public:
    int take(int from, int until)
    {
        while (!m_busy.empty() && m_busy.top().first < from) {
            m_free.insert(m_busy.top().second);
            m_busy.pop();
        }
        int lane = m_count;
        if (m_free.empty()) {
            ++m_count;
        } else {
            lane = *m_free.begin();
            m_free.erase(m_free.begin());
        }
        m_busy.push({until, lane});
        return lane;
    }
    [[nodiscard]] int count() const { return m_count; }

private:
    using Busy = std::pair<int, int>; ///< until, lane
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> m_busy;
    std::set<int> m_free;
    int m_count = 0;
};

void addNodes(Picture &picture, const LaneGraph &graph, const Lanes &lanes)
{
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const LaneNode &node = graph.nodes[i];
        const int index = static_cast<int>(i);
        picture.items.push_back({graph.key, node.row, node.says, node.label});
        picture.marks.push_back(
            {{static_cast<double>(i), -static_cast<double>(lanes.laneOf[i])}, node.glyph, node.ink, index});
        if (node.parent >= 0)
            picture.edges.push_back({node.parent, index, {Role::Faint, 0, 0.8}, false});
        picture.walk.push_back(index);
        picture.table.rows.push_back(
            {{{node.row},
              {node.parent < 0 ? QString() : graph.nodes[static_cast<std::size_t>(node.parent)].row},
              {node.title},
              {node.island > 0 ? QString::number(node.island) : QString()},
              {node.value, node.number > 0 ? QVariant(node.number) : QVariant()},
              {node.says}},
             index});
    }
}

} // namespace

LaneGraph laneGraphOf(const lineage::Lineage &lineage)
{
    const Chain chain = chainOf(lineage);
    LaneGraph graph{chain.key, chain.name, {}};
    int before = -1;
    for (std::size_t i = 0; i < chain.points.size(); ++i) {
        graph.nodes.push_back(nodeOf(chain.points[i], before, i + 1 == chain.points.size()));
        before = static_cast<int>(graph.nodes.size()) - 1;
        for (const auto *list : {&chain.attempts, &chain.branches}) {
            for (const ChainAttempt &attempt : *list) {
                if (attempt.parent == i)
                    graph.nodes.push_back(nodeOf(attempt, before));
            }
        }
    }
    return graph;
}

LaneGraph laneGraphOf(const RunEntry &run)
{
    LaneGraph graph{QStringLiteral("run:") + run.id(),
                    QStringLiteral("%1 · %2").arg(policyOf(run.record.settings), run.id()),
                    {}};
    QHash<QString, int> nodeOfText; // who had a text first
    for (const run::StepRecord &step : run.record.steps) {
        if (step.candidate.empty())
            continue;
        const int parent = nodeOfText.value(QString::fromStdString(step.parent), -1);
        const QString own = QString::fromStdString(step.candidate);
        graph.nodes.push_back(nodeOfStep(run, step, parent));
        if (!nodeOfText.contains(own))
            nodeOfText[own] = static_cast<int>(graph.nodes.size()) - 1;
    }
    return graph;
}

Lanes layOutLanes(const std::vector<LaneNode> &nodes)
{
    const Heirs heirs = heirsOf(nodes);
    Lanes lanes;
    lanes.laneOf.assign(nodes.size(), 0);
    std::map<int, FreeLanes> islands;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const int parent = nodes[i].parent;
        const int index = static_cast<int>(i);
        if (parent >= 0 && heirs.heir[static_cast<std::size_t>(parent)] == index)
            lanes.laneOf[i] = lanes.laneOf[static_cast<std::size_t>(parent)];
        else
            lanes.laneOf[i] = islands[nodes[i].island].take(std::max(parent, index - turnRoom), heirs.end[i]);
    }
    std::map<int, int> first;
    int next = 0;
    for (const auto &[island, free] : islands) {
        lanes.bands.push_back({island, next, free.count()});
        first[island] = next;
        next += free.count() + (islands.size() > 1 ? 1 : 0);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i)
        lanes.laneOf[i] += first[nodes[i].island];
    return lanes;
}

Picture lanePicture(const LaneGraph &graph)
{
    Picture picture;
    picture.name = laneText("Graph of %1").arg(graph.name);
    if (graph.nodes.empty()) {
        picture.message = laneText("There is no candidate yet.");
        return picture;
    }
    const Lanes lanes = layOutLanes(graph.nodes);
    picture.table.headers = {laneText("Candidate"), laneText("From"),    laneText("Title"),
                             laneText("Island"),    laneText("Latency"), laneText("In words")};
    picture.table.names = {"candidate", "from", "title", "island", "latency_ns", "in_words"};
    addNodes(picture, graph, lanes);
    int last = 0;
    for (const Lanes::Band &band : lanes.bands) {
        last = std::max(last, band.first + band.count);
        if (band.island > 0)
            picture.guides.push_back({Qt::Horizontal,
                                      0.5 - band.first,
                                      laneText("island %1").arg(band.island),
                                      {Role::Faint},
                                      Qt::DotLine});
    }
    picture.areLabelled = true;
    picture.world =
        QRectF(QPointF(-0.8, -last + 0.1), QPointF(static_cast<double>(graph.nodes.size()) - 0.2, 0.9));
    picture.mostPixels = {96, 62};
    picture.title =
        laneText("%1: %2 candidates, %3 lanes")
            .arg(graph.name, formatCount(static_cast<qint64>(graph.nodes.size())), formatCount(last));
    return picture;
}

} // namespace klineage::ui
