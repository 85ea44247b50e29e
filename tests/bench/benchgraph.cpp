// SPDX-License-Identifier: GPL-3.0-or-later
// A frame of the lineage's graph with 10,000 and 100,000 nodes. The graph is made in one place, makeGraph(): another one is measured by
// changing that alone.
#include "bench.h"
#include "uirows.h"

#include "ui/graph/lineageview.h"
#include "ui/models/lineagemodel.h"

#include <QApplication>
#include <QScrollBar>

#include <memory>

namespace klineage::bench {

namespace {

constexpr double goalMs = 16;
constexpr int frames = 200;

gate::Trial quickTrial(int i)
{
    gate::Trial trial;
    trial.id = std::to_string(i);
    trial.verdict.status = gate::VerdictStatus::Correct;
    trial.verdict.stage = gate::Stage::Profile;
    const double ns = 1e6 / (1 + 0.001 * i);
    trial.latencyNs = {ns, ns * 0.999, ns * 1.001};
    trial.verdict.comparisons.push_back({"parent", "", {1.001, 1.0, 1.002}, ns * 1.001, gate::Change::Gain});
    return trial;
}

/// Half of them states, half attempts from them.
lineage::Lineage branchedLineage(int nodes)
{
    lineage::Lineage made;
    made.workload = "many";
    made.platform = "pocl";
    for (int i = 0; i < nodes / 2; ++i) {
        const std::string id = "K" + std::to_string(i);
        if (i > 0)
            made.transitions.push_back({made.states.back().id, id, "tiling", "loop", "More.", ""});
        made.states.push_back({id, id + ".cu", "state", std::to_string(2 * i)});
        made.attempts.push_back({"R" + std::to_string(i), id, "r.cu", "tried", "tiling", "loop", "No.",
                                 std::to_string(2 * i + 1)});
        made.trials.push_back(quickTrial(2 * i));
        made.trials.push_back(quickTrial(2 * i + 1));
    }
    return made;
}

/// What is measured, and how it is moved: the widget that paints, and one step of a walk through all of it.
struct Graph {
    std::unique_ptr<ui::LineageModel> model;
    std::unique_ptr<ui::LineageView> view;

    [[nodiscard]] QWidget *canvas() const { return view->viewport(); }
    void move(int step) const
    {
        QScrollBar *bar = view->verticalScrollBar();
        bar->setValue(step % 2 == 0 ? (bar->value() + bar->pageStep()) % std::max(1, bar->maximum())
                                    : bar->value() + 1);
    }
};

Graph makeGraph(int nodes)
{
    Graph graph{std::make_unique<ui::LineageModel>(), nullptr};
    const lineage::Lineage lineage = branchedLineage(nodes);
    graph.model->refresh(&lineage, {}, ui::Direction::Backward);
    graph.view = std::make_unique<ui::LineageView>(graph.model.get());
    graph.view->resize(520, 900);
    graph.view->show();
    QApplication::processEvents();
    return graph;
}

std::vector<double> framesOf(const Graph &graph)
{
    QImage frame(graph.canvas()->size(), QImage::Format_ARGB32_Premultiplied);
    std::vector<double> samples;
    for (int i = 0; i < frames; ++i)
        samples.push_back(millisecondsOf([&] {
            graph.move(i);
            graph.canvas()->render(&frame);
        }));
    return samples;
}

} // namespace

void graphFrames(Reporter &reporter)
{
    Graph graph;
    const double made = millisecondsOf([&] { graph = makeGraph(10'000); });
    reporter.samplesAtMost(
        QStringLiteral("graph.10k"), framesOf(graph), QStringLiteral("ms"), goalMs,
        QStringLiteral("a frame while the row-aligned graph scrolls through 10,000 nodes"));
    reporter.info(QStringLiteral("graph.10k_made"), made, QStringLiteral("ms"),
                  QStringLiteral("the model and its view, once"));
    reporter.missing(
        QStringLiteral("graph.100k"),
        QStringLiteral("the row-aligned graph is made from the lineage's table, whose look-ups are linear: "
                       "100,000 nodes take minutes to make"));
}

namespace {

const Group group("graph", "frames of the lineage's graph", &graphFrames, true);

} // namespace

} // namespace klineage::bench
