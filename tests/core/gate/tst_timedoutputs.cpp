// SPDX-License-Identifier: GPL-3.0-or-later
//
// Fingerprints of timed launches against the oracle, against each other, and who is to blame when they disagree.
#include "core/gate/timing/timedoutputs.h"

#include "gatefixture.h"
#include "tests/paths.h"

#include <QtTest>

using namespace klineage;
using namespace klineage::gate;

namespace {

constexpr std::uint32_t word = 0x7ff37ff5;
constexpr std::size_t candidate = 0;
constexpr std::size_t theOther = 1;

workload::Workload rows()
{
    return test::parsed("name = \"rows\"\naxes = [\"R\"]\nflops = \"R\"\nbytes = \"R\"\n"
                        "[[tensor]]\nname = \"x\"\nrole = \"input\"\ndtype = \"f32\"\nshape = [\"R\", 5]\n"
                        "[[tensor]]\nname = \"y\"\nrole = \"output\"\ndtype = \"f32\"\nshape = [\"R\", 5]\n"
                        "[[case]]\nname = \"timed\"\naxes = { R = 120 }\n"
                        "[oracle]\nname = \"silu\"\nargs = { in = \"x\", out = \"y\" }\n");
}

std::unique_ptr<WorkerSession> startMemory()
{
    auto session = WorkerSession::start(
        {klineage::test::programPath("/klineage-fakeworker"), "memory", "--backend", "opencl"},
        kernel::DeviceKind::OpenCl, 30, {});
    if (!session)
        qFatal("%s", session.error().error.message.c_str());
    return std::move(*session);
}

/// Eight sets, two of them with a seed's content as it is.
struct Bench {
    Bench()
        : workload(rows())
        , session(startMemory())
        , buffers(*session, workload,
                  {makeInstance(workload, workload.cases.front(), 1).value(),
                   makeInstance(workload, workload.cases.front(), 2).value()})
        , outputs(buffers, [this](std::size_t set) { return computed(set); })
    {
        if (!buffers.allocate(8) || !buffers.redraw(5))
            qFatal("cannot prepare the buffers");
        outputs.beginBlock();
        while (!buffers.audited(known))
            ++known;
        while (buffers.audited(unknown))
            ++unknown;
    }
    StageResult<CaseInstancePtr> computed(std::size_t set)
    {
        auto content = std::make_shared<CaseInstance>();
        content->tensors = buffers.tensorsOf(set);
        content->tolerance = buffers.model().tolerance;
        content->expected =
            expectedOnCpu(workload, workload.cases.front(), content->tensors, content->tolerance).value();
        return CaseInstancePtr(std::move(content));
    }
    /// What a launch leaves that is right but for `factor`, and that leaves the elements from `written` on.
    std::vector<TilePrint> launch(std::size_t set, double factor = 1, std::size_t written = 600)
    {
        const auto content = computed(set).value();
        const auto &expected = content->expected.at("y");
        std::vector<std::uint32_t> out(600, word);
        for (std::size_t i = 0; i < written; ++i)
            kernel::storeElement(reinterpret_cast<std::byte *>(out.data()), kernel::DType::F32, i,
                                 factor * expected[i]);
        std::vector<TilePrint> prints;
        const TileLayout &layout = outputs.outputs().layouts.front();
        for (std::size_t first = 0; first < layout.elements; first += layout.tileElements)
            prints.push_back(tilePrintOf(reinterpret_cast<const std::byte *>(out.data()), layout.dtype, first,
                                         std::min(layout.tileElements, layout.elements - first),
                                         outputs.outputs().key, word));
        return prints;
    }
    /// Who is to blame; nobody: all is well.
    std::optional<std::size_t> look(std::size_t side, std::size_t set, const std::vector<TilePrint> &prints)
    {
        const auto looked = outputs.look(side, {1, set, 1, word, true}, prints);
        if (!looked)
            qFatal("cannot look");
        return *looked ? std::optional((*looked)->side) : std::nullopt;
    }

    workload::Workload workload;
    std::unique_ptr<WorkerSession> session;
    TimedBuffers buffers;
    TimedOutputs outputs;
    std::size_t known = 0;
    std::size_t unknown = 0;
};

} // namespace

class TestTimedOutputs : public QObject
{
    Q_OBJECT

private slots:
    void rightLaunches();
    void knownContent();
    void unknownContent();
    void whoIsToBlame();
    void consistentlyWrongIsFoundWhenDrawn();
    void aSampleOfSeveralSets();
    void knownSetsOfADecoy();
    void doubtsHaveAnEnd();
};

void TestTimedOutputs::rightLaunches()
{
    Bench bench;
    for (int again = 0; again < 2; ++again) {
        for (std::size_t set = 0; set < 8; ++set) {
            QVERIFY(!bench.look(candidate, set, bench.launch(set)));
            QVERIFY(!bench.look(theOther, set, bench.launch(set, 1 + 1e-7)));
        }
    }
    QCOMPARE(bench.outputs.launches(), std::size_t{32});
    QCOMPARE(bench.outputs.computed(), std::size_t{0});
    QVERIFY(!bench.outputs.varies(candidate));
    QVERIFY(!bench.look(candidate, 0, bench.launch(0, 1 - 1e-7)));
    QVERIFY(bench.outputs.varies(candidate));
    const auto closer = bench.outputs.lookCloser();
    QVERIFY(closer && !*closer);
    QCOMPARE(bench.outputs.computed(), std::size_t{1});
}

void TestTimedOutputs::knownContent()
{
    Bench bench;
    QCOMPARE(bench.look(candidate, bench.known, bench.launch(bench.known, 1.001)), std::optional(candidate));
    const auto looked =
        bench.outputs.look(candidate, {1, bench.known, 1, word, true}, bench.launch(bench.known, 1, 599));
    QVERIFY(looked && *looked && (*looked)->fault.unwritten);
    QCOMPARE((*looked)->fault.to, std::string("y[119, 4]"));
}

void TestTimedOutputs::unknownContent()
{
    Bench bench;
    QCOMPARE(bench.look(candidate, bench.unknown, bench.launch(bench.unknown, 1, 0)),
             std::optional(candidate)); // the first to run there, and nothing written
    Bench other;
    QVERIFY(!other.look(candidate, other.unknown, other.launch(other.unknown)));
    QCOMPARE(other.look(candidate, other.unknown, other.launch(other.unknown, 1.001)),
             std::optional(candidate));
}

void TestTimedOutputs::whoIsToBlame()
{
    Bench bench;
    QVERIFY(!bench.look(candidate, bench.unknown, bench.launch(bench.unknown, 1.001)));
    QCOMPARE(bench.look(theOther, bench.unknown, bench.launch(bench.unknown)), std::optional(candidate));
    Bench other;
    QVERIFY(!other.look(candidate, other.unknown, other.launch(other.unknown)));
    QCOMPARE(other.look(theOther, other.unknown, other.launch(other.unknown, 1.001)),
             std::optional(theOther));
}

void TestTimedOutputs::consistentlyWrongIsFoundWhenDrawn()
{
    Bench bench;
    for (std::size_t set = 0; set < 8; ++set)
        QVERIFY(!bench.look(candidate, set, bench.launch(set, bench.buffers.audited(set) ? 1 : 1.001)));
    const auto closer = bench.outputs.lookCloser();
    QVERIFY(closer && *closer);
    QCOMPARE((*closer)->side, candidate);
}

void TestTimedOutputs::aSampleOfSeveralSets()
{
    Bench bench;
    std::vector<TilePrint> prints;
    for (const std::size_t set : {6u, 7u, 0u}) {
        const auto one = bench.launch(set);
        prints.insert(prints.end(), one.begin(), one.end());
    }
    const auto good = bench.outputs.look(candidate, {1, 6, 3, word, true}, prints);
    QVERIFY(good && !*good);
    const auto empty = bench.launch(0, 1, 300);
    std::copy(empty.begin(), empty.end(), prints.end() - static_cast<std::ptrdiff_t>(empty.size()));
    const auto looked = bench.outputs.look(candidate, {1, 6, 3, word, true}, prints);
    QVERIFY(looked && *looked);
    QCOMPARE((*looked)->fault.set, std::size_t{0});
    QCOMPARE((*looked)->fault.launch, std::size_t{2});
}

/// What of a decoy is known is judged, and nothing is remembered of it.
void TestTimedOutputs::knownSetsOfADecoy()
{
    Bench bench;
    const std::size_t set = bench.unknown;
    const TimedRun run{1, set, 1, word, true};
    const auto ordinary = bench.launch(set);
    QVERIFY(!bench.look(candidate, set, ordinary));
    const auto ofSeed = [&](double factor) { return bench.launch(bench.known, factor); };
    const std::size_t content = bench.buffers.seedOf(bench.known) - 1;
    QVERIFY(!bench.outputs.lookKnown(candidate, run, ofSeed(1), {{set, content}}));
    const auto wrong = bench.outputs.lookKnown(candidate, run, ofSeed(1.001), {{set, content}});
    QVERIFY(wrong);
    QCOMPARE(wrong->fault.set, set);
    QVERIFY(bench.outputs.lookKnown(candidate, run, ofSeed(1), {{set, 1 - content}}));
    QVERIFY(!bench.outputs.lookKnown(candidate, run, ofSeed(1.001), {})); // of others nothing is known
    QVERIFY(!bench.look(candidate, set, ordinary));
    QVERIFY(!bench.outputs.varies(candidate));

    // A run that was left out may have written nothing.
    TimedRun early = run;
    early.around = 2;
    auto both = ofSeed(1);
    const auto behind = bench.launch((set + 1) % 8, 1, 0);
    both.insert(both.end(), behind.begin(), behind.end());
    QVERIFY(!bench.outputs.lookKnown(candidate, early, both, {{set, content}}));
    const auto ahead = bench.launch((set + 1) % 8, 1, 5);
    std::copy(ahead.begin(), ahead.end(), both.end() - static_cast<std::ptrdiff_t>(ahead.size()));
    QVERIFY(bench.outputs.lookKnown(candidate, early, both, {{set, content}}));
}

/// Whoever leaves something to doubt in every launch does not make the oracle compute for ever.
void TestTimedOutputs::doubtsHaveAnEnd()
{
    Bench bench;
    for (std::uint64_t content = 1; content < 200; ++content) {
        auto prints = bench.launch(bench.unknown);
        prints.front().unwritten = 1; // as of a result that is no number, and right
        TimedRun run{1, bench.unknown, 1, word, true, content};
        bench.buffers.setContent(content);
        QVERIFY(bench.outputs.look(candidate, run, prints));
    }
    QVERIFY(bench.outputs.computed() >= 10);
    QVERIFY(bench.outputs.computed() <= 100);
}

QTEST_GUILESS_MAIN(TestTimedOutputs)
#include "tst_timedoutputs.moc"

#include <algorithm>
