// SPDX-License-Identifier: GPL-3.0-or-later
// What the pictures of the story say: only what was recorded, or what the paper has printed and then called so.
#include "tests/paths.h"
#include "tests/ui/common/sample.h"
#include "tests/ui/common/uitest.h"
#include "ui/story/chain/chainpicture.h"
#include "ui/story/chain/overlay.h"
#include "ui/story/graph/graphbench.h"
#include "ui/story/graph/lanes.h"
#include "ui/story/published/publishedpictures.h"
#include "ui/story/roundtrip/roundtrippicture.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

using namespace klineage;
using namespace klineage::ui;

namespace {

const Workspace &shipped()
{
    static const Workspace workspace = openWorkspace(klineage::test::sourcePath()).value();
    return workspace;
}

RunEntryPtr searchRun(const QString &id)
{
    static const RunListing listing =
        readRunListing(std::filesystem::path(klineage::test::sourcePath()) / "tests/data/searchruns", {});
    const auto found = std::find_if(listing.runs.begin(), listing.runs.end(),
                                    [&](const RunEntryPtr &run) { return run->id() == id; });
    return found == listing.runs.end() ? nullptr : *found;
}

int marksOf(const Picture &picture, Glyph glyph)
{
    return static_cast<int>(std::count_if(picture.marks.begin(), picture.marks.end(),
                                          [glyph](const PictureMark &mark) { return mark.glyph == glyph; }));
}

bool says(const Picture &picture, const QString &part)
{
    return std::any_of(picture.texts.begin(), picture.texts.end(), [&](const PictureText &text) {
        return std::any_of(text.runs.begin(), text.runs.end(),
                           [&](const TextRun &run) { return run.text.contains(part); });
    });
}

/// Indices point at what is there, and all of it lies in the world.
void checkSound(const Picture &picture)
{
    const auto isItem = [&](int item) { return item >= -1 && item < static_cast<int>(picture.items.size()); };
    const QRectF world = picture.world.adjusted(-1e-9, -1e-9, 1e-9, 1e-9);
    for (const PictureMark &mark : picture.marks) {
        QVERIFY(isItem(mark.item));
        QVERIFY2(world.contains(mark.at), qPrintable(picture.name));
    }
    for (const PictureBar &bar : picture.bars) {
        QVERIFY(isItem(bar.item));
        QVERIFY2(world.contains(bar.area), qPrintable(picture.name));
    }
    for (const PictureEdge &edge : picture.edges) {
        QVERIFY(edge.from >= 0 && edge.from < static_cast<int>(picture.marks.size()));
        QVERIFY(edge.to >= 0 && edge.to < static_cast<int>(picture.marks.size()));
    }
    for (std::size_t i = 0; i < picture.texts.size(); ++i)
        QVERIFY(picture.texts[i].unless < static_cast<int>(i));
    for (const int item : picture.walk)
        QVERIFY(item >= 0 && isItem(item));
    for (const PictureTable::Row &row : picture.table.rows) {
        QVERIFY(isItem(row.item));
        QCOMPARE(row.cells.size(), static_cast<std::size_t>(picture.table.headers.size()));
    }
    for (const PictureItem &item : picture.items)
        QVERIFY(!item.caption.isEmpty());
    QVERIFY(!picture.name.isEmpty());
}

} // namespace

class TestStoryPictures : public UiTest
{
    Q_OBJECT

private slots:
    void waterfallHasWhatWasRecorded()
    {
        const Workspace workspace = sampleWorkspace();
        const Chain chain = chainOf(*workspace.findLineage("toy/pocl"));
        const Picture picture = waterfall(chain);
        checkSound(picture);
        QCOMPARE(picture.bars.size(), std::size_t{3}); // a drop a step
        QCOMPARE(picture.bars[0].area.top(), std::log10(400e3));
        QCOMPARE(picture.bars[0].area.bottom(), std::log10(800e3));
        QVERIFY(says(picture, "tiles"));
        QVERIFY(says(picture, "alpha")); // its card
        QVERIFY(says(picture, "2.00×"));
        QCOMPARE(marksOf(picture, Glyph::Rejected), 1);
        QCOMPARE(marksOf(picture, Glyph::Crossed), 1);
        QCOMPARE(marksOf(picture, Glyph::Branch), 1);
        QCOMPARE(marksOf(picture, Glyph::Best), 1);
        QCOMPARE(picture.edges.size(), std::size_t{3}); // each is joined to where it was tried
        QCOMPARE(picture.guides.size(), std::size_t{2});
        QVERIFY(picture.guides[0].name.startsWith("openblas"));
        QVERIFY(picture.guides[1].name.contains("no latency"));
        QCOMPARE(picture.table.rows.size(), std::size_t{7});
        const int best = picture.itemOf("toy/pocl", "K03");
        QVERIFY(best >= 0);
        QCOMPARE(picture.placeOf(best).y(), std::log10(100e3));
        QVERIFY(picture.items[static_cast<std::size_t>(best)].caption.contains("paired"));
        // What failed has no latency, and none is made up: it stands below the axis, which has its end above it.
        const int wrong = picture.itemOf("toy/pocl", "R02a");
        QVERIFY(picture.yFrom && *picture.yFrom < std::log10(100e3));
        QCOMPARE(picture.guides[1].at, *picture.yFrom);
        QVERIFY(picture.placeOf(wrong).y() < *picture.yFrom);
    }

    /// One device on the axis; a trial of another stands below it, says which, and is joined to what it was tried from.
    void anotherDeviceHasNoPlaceOnTheAxis()
    {
        Workspace workspace = sampleWorkspace();
        for (lineage::Lineage &lineage : workspace.lineages) {
            for (gate::Trial &trial : lineage.trials)
                trial.environment.device =
                    trial.id == "tB1" || trial.id == "tK02" ? "AMD EPYC" : "NVIDIA H200";
        }
        const Chain chain = chainOf(*workspace.findLineage("toy/pocl"));
        QCOMPARE(chain.device, QStringLiteral("NVIDIA H200"));
        QCOMPARE(chain.points[2].ns, 0.0);
        const Picture picture = waterfall(chain);
        checkSound(picture);
        QVERIFY2(picture.y.title.contains("NVIDIA H200"), qPrintable(picture.y.title));
        QCOMPARE(marksOf(picture, Glyph::Dot), 2);
        for (const char *row : {"K02", "trial:tB1"}) {
            const int item = picture.itemOf("toy/pocl", QLatin1String(row));
            QVERIFY(picture.placeOf(item).y() < *picture.yFrom);
            QVERIFY(picture.items[static_cast<std::size_t>(item)].caption.contains(" on AMD EPYC"));
        }
        QVERIFY(says(picture, " on AMD EPYC"));
        // Nothing hides another thing.
        for (std::size_t a = 0; a < picture.marks.size(); ++a) {
            for (std::size_t b = 0; b < a; ++b)
                QVERIFY(picture.marks[a].at != picture.marks[b].at);
        }
        QCOMPARE(picture.bars.size(), std::size_t{2}); // K01, and K03 from K01 on
        QVERIFY(waterfall(chainOf(*sampleWorkspace().findLineage("toy/pocl"))).y.title.contains("Latency"));
        for (const PictureTable::Row &row : picture.table.rows) {
            if (row.cells[0].text == QLatin1String("K02"))
                QVERIFY(!row.cells[6].value.isValid() && row.cells[10].text.contains("AMD EPYC"));
        }
    }

    void whatIsNotGatedIsNoFigure()
    {
        const Workspace workspace = sampleWorkspace();
        const Picture picture = waterfall(chainOf(*workspace.findLineage("toy/sm90")));
        checkSound(picture);
        QVERIFY(picture.bars.empty());
        QCOMPARE(marksOf(picture, Glyph::Ungated), 2);
        QVERIFY(picture.title.contains("nothing was timed"));
        QVERIFY(!deoptimizationTrace(chainOf(*workspace.findLineage("toy/sm90"))).message.isEmpty());
        lineage::Lineage empty;
        QVERIFY(!waterfall(chainOf(empty)).message.isEmpty());
    }

    void pagesOfAPresentationSayNoMoreThanTheirState()
    {
        const Workspace workspace = sampleWorkspace();
        const Chain chain = chainOf(*workspace.findLineage("toy/pocl"));
        const Picture page = waterfall(chain, 1);
        checkSound(page);
        QVERIFY(says(page, "tiles"));
        QVERIFY(!says(page, "vectors"));
        QCOMPARE(page.bars.size(), std::size_t{3}); // what comes later is faint
        QVERIFY(page.bars[2].ink.opacity < page.bars[0].ink.opacity);
    }

    void allShippedLineagesMakePictures()
    {
        for (const lineage::Lineage &lineage : shipped().lineages) {
            const Chain chain = chainOf(lineage);
            checkSound(waterfall(chain));
            checkSound(lanePicture(laneGraphOf(lineage)));
            const Picture trace = deoptimizationTrace(chain);
            if (trace.message.isEmpty())
                checkSound(trace);
        }
        const Chain gemm = chainOf(*shipped().findLineage("gemm/sm90"));
        QVERIFY(says(waterfall(gemm), "compute-bound"));
        QVERIFY(says(waterfall(gemm), "specialize-warpgroups"));
    }

    void aTraceDropsByWhatWasTakenAway()
    {
        const Workspace workspace = sampleWorkspace();
        const Picture trace = deoptimizationTrace(chainOf(*workspace.findLineage("toy/pocl")));
        checkSound(trace);
        QCOMPARE(trace.bars.size(), std::size_t{3});
        QCOMPARE(trace.bars[0].area.bottom(), 0.0); // K* is 1
        QVERIFY(std::abs(trace.bars[2].area.top() - std::log10(1.0 / 8)) < 1e-9);
        QVERIFY(trace.title.contains("not paired"));
        Picture beside = trace;
        addPublishedDrops(beside, paper());
        checkSound(beside);
        QCOMPARE(beside.bars.size(), std::size_t{12});
        for (std::size_t i = 3; i < beside.bars.size(); ++i)
            QVERIFY(beside.bars[i].hollow);
        QVERIFY(says(beside, "÷ 194×"));
        QVERIFY(says(beside, "published"));
    }

    void aRunIsAChainOfItsBests()
    {
        const RunEntryPtr run = searchRun("simulated-kernel-smith");
        QVERIFY(run);
        const Chain chain = chainOf(*run);
        QVERIFY(chain.points.size() > 1);
        double before = 1e300;
        for (const ChainPoint &point : chain.points) {
            QVERIFY(point.ns > 0 && point.ns < before);
            before = point.ns;
        }
        std::size_t candidates = 0;
        for (const run::StepRecord &step : run->record.steps)
            candidates +=
                step.candidate.empty() || traceKind(step.outcome) == RunTracePoint::Kind::Other ? 0 : 1;
        QCOMPARE(chain.points.size() + chain.attempts.size(), candidates);
        checkSound(waterfall(chain));
        const LaneGraph graph = laneGraphOf(*run);
        checkSound(lanePicture(graph));
        std::set<int> islands;
        for (const LaneNode &node : graph.nodes)
            islands.insert(node.island);
        QVERIFY(islands.size() > 2);
    }

    void stepsHaveTheirOwnGlyphs()
    {
        for (const char *id : {"simulated-kernelpro", "simulated-adaexplore", "simulated-accelopt",
                               "simulated-kernel-smith"}) {
            const RunEntryPtr run = searchRun(id);
            QVERIFY2(run, id);
            const Picture picture = runSteps(*run, paper());
            checkSound(picture);
            const RunTrace trace = runTrace(*run);
            const auto count = [&](RunTracePoint::Kind kind) {
                return static_cast<int>(
                    std::count_if(trace.points.begin(), trace.points.end(),
                                  [kind](const RunTracePoint &point) { return point.kind == kind; }));
            };
            QCOMPARE(marksOf(picture, Glyph::Disc), count(RunTracePoint::Kind::Valid));
            QCOMPARE(marksOf(picture, Glyph::Diamond), count(RunTracePoint::Kind::Audited));
            QCOMPARE(marksOf(picture, Glyph::Cross), count(RunTracePoint::Kind::Wrapper));
            QCOMPARE(marksOf(picture, Glyph::Triangle), count(RunTracePoint::Kind::Failed));
        }
        // Beside an operator that the paper has, what it prints, as lines that are called so.
        RunEntry run = *searchRun("simulated-adaexplore");
        run.record.settings.workload = "gemm";
        const Picture picture = runSteps(run, paper());
        const auto published =
            std::count_if(picture.guides.begin(), picture.guides.end(), [](const PictureGuide &guide) {
                return guide.name.contains("published") && guide.name.contains("SM120");
            });
        QCOMPARE(published, 2);
    }

    /// Two nodes never share a place, whoever goes on does so in the lane, and islands keep apart.
    void lanesNeverCollide()
    {
        std::mt19937 random(17);
        for (int round = 0; round < 60; ++round) {
            const int islands = round % 4;
            std::vector<LaneNode> nodes(1 + random() % 300);
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                nodes[i].parent = i == 0 || random() % 40 == 0 ? -1 : static_cast<int>(random() % i);
                nodes[i].island =
                    islands == 0 ? 0 : 1 + static_cast<int>(random() % static_cast<unsigned>(islands));
            }
            const Lanes lanes = layOutLanes(nodes);
            QCOMPARE(lanes.laneOf.size(), nodes.size());
            std::vector<int> children(nodes.size(), 0);
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                const auto band =
                    std::find_if(lanes.bands.begin(), lanes.bands.end(),
                                 [&](const Lanes::Band &b) { return b.island == nodes[i].island; });
                QVERIFY(band != lanes.bands.end());
                QVERIFY(lanes.laneOf[i] >= band->first && lanes.laneOf[i] < band->first + band->count);
                const int parent = nodes[i].parent;
                if (parent >= 0 && lanes.laneOf[static_cast<std::size_t>(parent)] == lanes.laneOf[i])
                    ++children[static_cast<std::size_t>(parent)];
            }
            // Nobody stands in the way between a node and who goes on from it.
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                for (std::size_t j = i + 1; j < nodes.size(); ++j) {
                    if (nodes[j].parent != static_cast<int>(i) || lanes.laneOf[j] != lanes.laneOf[i])
                        continue;
                    for (std::size_t k = i + 1; k < j; ++k)
                        QVERIFY(lanes.laneOf[k] != lanes.laneOf[i]);
                    break;
                }
            }
        }
    }

    void aChainKeepsToOneLane()
    {
        const LaneGraph graph = laneGraphOf(*shipped().findLineage("gemm/sm90"));
        const Lanes lanes = layOutLanes(graph.nodes);
        for (std::size_t i = 0; i < graph.nodes.size(); ++i)
            QCOMPARE(lanes.laneOf[i] == 0, graph.nodes[i].row.startsWith('K'));
        QCOMPARE(lanes.bands.size(), std::size_t{1});
    }

    void overlaidLineagesSayWhatTheyAreMeasuredBy()
    {
        const auto &all = shipped().lineages;
        const lineage::Lineage &softmax = *shipped().findLineage("softmax/sm90");
        const auto chosen = overlayBeside(all, softmax, 6);
        QCOMPARE(chosen.size(), std::size_t{6});
        QCOMPARE(chosen[0]->key(), std::string("softmax/sm90"));
        std::set<std::string> keys;
        for (const lineage::Lineage *each : chosen)
            keys.insert(each->key());
        QVERIFY(keys.count("softmax/pocl") && keys.count("softmax/pocl-walked"));
        const Picture first = overlay(chosen, OverlayScale::First);
        checkSound(first);
        QCOMPARE(first.legend.size(), std::size_t{6});
        QVERIFY(first.legend[0].text.contains("no reference recorded"));
        QVERIFY(first.title.contains("not paired"));
        const Picture beside =
            overlay({shipped().findLineage("gemm/sm90"), &softmax}, OverlayScale::Reference);
        checkSound(beside);
        QVERIFY(beside.legend[0].text.contains("cublas"));
        for (const PictureItem &item :
             beside.items) // softmax was timed beside none: nothing is made up for it
            QCOMPARE(item.key, "gemm/sm90");
        QVERIFY(!overlay({&softmax}, OverlayScale::Reference).message.isEmpty());
        QVERIFY(!overlay({}, OverlayScale::First).message.isEmpty());
    }

    void publishedNumbersAreThoseOfTheTables()
    {
        QCOMPARE(paper().latencies.size(), std::size_t{10});
        QCOMPARE(paper().cards.size(), std::size_t{9});
        double logs = 0;
        int failures = 0;
        for (const PaperLatency &row : paper().latencies) {
            QVERIFY(row.klineageMs > 0 && row.referenceMs > 0);
            QVERIFY(!row.device.isEmpty() && !row.reference.isEmpty());
            QVERIFY(shipped().findWorkload(row.ours.toStdString()));
            logs += std::log(row.referenceMs / row.klineageMs);
            failures += (row.adaexploreMs <= 0 ? 1 : 0) + (row.acceloptMs <= 0 ? 1 : 0);
        }
        // The paper's own summary of Figure 3: 1.12×, and 6 and 8 of 10 pairs.
        QCOMPARE(std::round(std::exp(logs / 10) * 100), 112.0);
        QCOMPARE(failures, 6);
    }

    void publishedBarsAreMarked()
    {
        const Picture picture = speedupBars(shipped(), paper());
        checkSound(picture);
        int published = 0;
        for (const PictureBar &bar : picture.bars) {
            const QString &caption = picture.items[static_cast<std::size_t>(bar.item)].caption;
            QCOMPARE(caption.contains("published"), bar.hollow);
            published += bar.hollow ? 1 : 0;
        }
        QCOMPARE(published, 24);
        QVERIFY(marksOf(picture, Glyph::Cross) >= 6);
        QVERIFY(says(picture, "†"));
        const auto legend = [&](const QString &part) {
            return std::any_of(picture.legend.begin(), picture.legend.end(),
                               [&](const LegendEntry &entry) { return entry.text.contains(part); });
        };
        QVERIFY(legend("H100 PCIe") && legend("RTX PRO 6000 Blackwell"));
        // Ours stands in the group of the same operator.
        const int ours = picture.itemOf(
            "gemm/sm90", QString::fromStdString(shipped().findLineage("gemm/sm90")->states.back().id));
        QVERIFY(ours >= 0);
        QVERIFY(
            picture.items[static_cast<std::size_t>(ours)].caption.startsWith("GEMM SM90 · recorded here"));
    }

    /// Each trial once in its lane; what has no speed stands left of the axis; counts and intervals are the log's.
    void roundtripsStandInTheLanesOfTheirArms()
    {
        run::RoundtripRecord record;
        const auto made = [](int number, const char *outcome, std::optional<double> share) {
            run::RoundtripTry one;
            one.line.number = number;
            one.line.outcome = outcome;
            one.line.share = share;
            one.device = "a GPU";
            one.time = "2026-11-28T08:48:10.307Z";
            if (share)
                one.speedup = gate::Interval{*share, *share - 0.01, *share + 0.02};
            return one;
        };
        run::RoundtripArm full{"full", {{1, {made(0, "recovered", 0.97)}}, {2, {}}}, {}, {}, {}};
        run::RoundtripArm none{"none",
                               {{1, {made(0, "compile_error", {}), made(1, "recovered", 0.95)}},
                                {2, {made(0, "short", 0.6), made(1, "short", 0.7)}},
                                {3, {made(0, "wrong", {})}}},
                               {},
                               {},
                               {}};
        full.count = {"full", 1, 1, 1, 0.97, 1};
        full.recovered = {1, 0.025, 1};
        none.count = {"none", 3, 2, 1, 0.7, 0};
        none.recovered = {1.0 / 3, 0.01, 0.91};
        record.arms = {full, none};
        const Workspace workspace = sampleWorkspace();
        const Picture picture = roundtripPicture(*workspace.findLineage("toy/pocl"), record);
        checkSound(picture);
        QCOMPARE(picture.marks.size(), std::size_t{7});
        QCOMPARE(marksOf(picture, Glyph::Disc), 2);
        QCOMPARE(marksOf(picture, Glyph::Ring), 2);
        QCOMPARE(marksOf(picture, Glyph::Crossed), 2);
        QCOMPARE(marksOf(picture, Glyph::Ungated), 1);
        QCOMPARE(picture.edges.size(), std::size_t{2});
        QCOMPARE(picture.table.rows.size(), std::size_t{7});
        QVERIFY(picture.xFrom && *picture.xFrom < 0.59);
        for (const PictureMark &mark : picture.marks) {
            const bool isWithout = mark.glyph == Glyph::Crossed || mark.glyph == Glyph::Ungated;
            QCOMPARE(mark.at.x() < *picture.xFrom, isWithout);
        }
        for (const PictureLine &line : picture.lines)
            QVERIFY(picture.world.contains(line.points.front())
                    && picture.world.contains(line.points.back()));
        QVERIFY(says(picture, "did not compile") && says(picture, "wrong")
                && says(picture, "no reply recorded"));
        QVERIFY(says(picture, "0.700×") && !says(picture, "0.600×")); // of a trial its last try
        const int first = picture.itemOf("roundtrip:toy/pocl", "none-t2.1");
        const int last = picture.itemOf("roundtrip:toy/pocl", "none-t2.2");
        QCOMPARE(picture.placeOf(first), QPointF(0.6, picture.placeOf(last).y()));
        const QString &caption = picture.items[static_cast<std::size_t>(last)].caption;
        for (const char *part : {"without cards", "trial 2", "K03", "0.690 – 0.720", "same rounds", "a GPU",
                                 "2026-11-28", "author"})
            QVERIFY2(caption.contains(QString::fromUtf8(part)), part);
        const auto guide = [&](const QString &part) {
            return std::any_of(picture.guides.begin(), picture.guides.end(),
                               [&](const PictureGuide &each) { return each.name.contains(part); });
        };
        QVERIFY(guide("1 of 3 recovered, 0 at first") && guide("95 %: 1 – 91 %"));
        QVERIFY(guide("K03 = 1") && guide("0.9: recovered") && guide("no speed"));
        QCOMPARE(picture.y.names.size(), std::size_t{2});

        const Picture empty = roundtripPicture(*workspace.findLineage("toy/pocl"), {});
        QVERIFY(empty.message.contains("klineage-cli lineage roundtrip toy/pocl --ask"));
    }

    void shippedRoundtripsMakePictures()
    {
        int recorded = 0;
        for (const lineage::Lineage &lineage : shipped().lineages) {
            const auto record = run::readRoundtripRecord(lineage.directory);
            QVERIFY2(record, lineage.key().c_str());
            QVERIFY(record->notices.empty());
            const Picture picture = roundtripPicture(lineage, *record);
            QCOMPARE(picture.message.isEmpty(), !record->arms.empty());
            if (record->arms.empty())
                continue;
            ++recorded;
            checkSound(picture);
            // The state that they were timed beside, though a stronger one has come since.
            const std::string goal = run::roundtripGoal(lineage, *record);
            if (lineage.key() == "fmha/sm90")
                QCOMPARE(goal, std::string("K14"));
            QVERIFY(picture.x.title.contains(QString::fromStdString(goal)));
            std::set<std::pair<double, double>> places; // nothing hides another thing
            for (const PictureMark &mark : picture.marks)
                places.insert({mark.at.x(), mark.at.y()});
            QCOMPARE(places.size(), picture.marks.size());
            for (const run::RoundtripArm &arm : record->arms) {
                QCOMPARE(std::count_if(arm.trials.begin(), arm.trials.end(),
                                       [](const run::RoundtripTrial &trial) { return !trial.tries.empty(); }),
                         arm.count.trials);
                for (const run::RoundtripTrial &trial : arm.trials) {
                    for (const run::RoundtripTry &made : trial.tries)
                        QCOMPARE(made.speedup.has_value(), made.line.share.has_value());
                }
            }
        }
        QVERIFY(recorded >= 5);
    }

    void theBenchmarkDrawsEachZoom()
    {
        const std::vector<double> times = graphFrameTimes(300);
        QVERIFY(times.size() >= 3);
        for (const double ms : times)
            QVERIFY(ms > 0);
        QVERIFY(graphLayoutTime(300) > 0);
    }
};

KLINEAGE_UI_TEST(TestStoryPictures)
#include "tst_storypictures.moc"
