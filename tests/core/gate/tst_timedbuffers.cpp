// SPDX-License-Identifier: GPL-3.0-or-later
//
// What timed runs read and write, in a worker that has memory and nothing else; and how the runs are laid out.
#include "core/gate/timing/rounds.h"

#include "timedbench.h"

#include <QtTest>

#include <cmath>
#include <cstring>
#include <set>

using namespace klineage;
using namespace klineage::gate;
using namespace klineage::test;
using kernel::DType;

class TestTimedBuffers : public QObject
{
    Q_OBJECT
private slots:
    void auditedSetsHoldASeedsContent();
    void noTwoSetsShareContent();
    void everySetIsNew();
    void setsHoldTheSameInAnotherWorker();
    void redrawChangesBindings();
    void offsetsStayAsTheyAre();
    void fillsAreOutputsAndOpenWorkspaces();
    void largeWorkspacesAreShared();
    void inspectionSeesChanges();
    void aSetForEachSeedAtMost();
    void onADeviceNoContentComesTwice();
    void allWorkspacesAreRefilledOnADevice();
    void knownContentsComeAndGo_data();
    void knownContentsComeAndGo();
    void repeats_data();
    void repeats();
    void nearSidesHaveTheSameSamples();
    void clocksOfOneSideHaveToAgree();
    void fillWordsAreNaNs();
};

void TestTimedBuffers::auditedSetsHoldASeedsContent()
{
    Bench bench(10);
    for (const std::uint64_t key : {1u, 2u, 3u}) {
        QVERIFY(bench.redraw(key));
        const auto sets = bench.buffers.bindings("candidate");
        std::set<std::uint64_t> seeds;
        for (std::size_t set = 0; set < bench.buffers.count(); ++set) {
            if (!bench.buffers.audited(set))
                continue;
            const std::uint64_t seed = bench.buffers.seedOf(set);
            QVERIFY(seed >= 100 && seed < 103);
            QVERIFY(bench.content(sets[set], "x") == bench.input(seed - 100));
            seeds.insert(seed);
        }
        QCOMPARE(seeds.size(), std::size_t{3});
    }
}

void TestTimedBuffers::noTwoSetsShareContent()
{
    Bench bench(10);
    QVERIFY(bench.redraw(7));
    std::set<Bytes> contents;
    std::set<BufferId> buffers;
    for (const BufferSet &set : bench.buffers.bindings("candidate")) {
        contents.insert(bench.content(set, "x"));
        buffers.insert(set.at("x").buffer);
        buffers.insert(set.at("y").buffer);
    }
    QCOMPARE(contents.size(), std::size_t{10});
    QCOMPARE(buffers.size(), std::size_t{20});
}

void TestTimedBuffers::everySetIsNew()
{
    Bench bench(9);
    std::set<Bytes> seen;
    for (const std::uint64_t key : {5u, 6u, 7u}) {
        QVERIFY(bench.redraw(key));
        const auto sets = bench.buffers.bindings("candidate");
        for (std::size_t set = 0; set < sets.size(); ++set) {
            const Bytes content = bench.content(sets[set], "x");
            // What is made again for the oracle is what the worker made.
            const auto made = bench.buffers.tensorsOf(set);
            QVERIFY(content == Bytes(made.front().bytes.begin(), made.front().bytes.end()));
            if (bench.buffers.audited(set))
                continue;
            for (const Bytes &row : rowsOf(content))
                QVERIFY(seen.insert(row).second);
        }
    }
    for (const CaseInstancePtr &content : bench.contents) {
        const auto &bytes = content->tensors.front().bytes;
        for (const Bytes &row : rowsOf(Bytes(bytes.begin(), bytes.end())))
            QVERIFY(!seen.contains(row));
    }
}

void TestTimedBuffers::setsHoldTheSameInAnotherWorker()
{
    Bench bench(8, true);
    QVERIFY(bench.buffers.allocateWorkspaces("candidate", planWithWorkspaces()));
    const auto other = startMemory(kernel::DeviceKind::OpenCl);
    TimedBuffers twin(*other, bench.buffers);
    QVERIFY(twin.allocate(8));
    QVERIFY(twin.allocateWorkspaces("parent", planWithWorkspaces()));
    QCOMPARE(twin.outputNames(), bench.buffers.outputNames());
    const auto heldBy = [](WorkerSession &session, const BufferSet &set, const HostTensor &tensor) {
        const BufferBinding binding = set.at(tensor.name);
        const auto image = session.download(binding.buffer, tensor.bytes.size(), binding.offsetBytes);
        return image ? Bytes(image->begin(), image->end()) : Bytes();
    };
    for (const std::uint64_t key : {1u, 2u, 3u}) {
        QVERIFY(bench.redraw(key));
        QVERIFY(twin.redraw(key));
        for (const std::vector<CopyRange> &ranges : twin.contents())
            QVERIFY(other->copy(ranges));
        const auto here = bench.buffers.bindings("candidate");
        const auto there = twin.bindings("parent");
        for (std::size_t set = 0; set < bench.buffers.count(); ++set) {
            QCOMPARE(twin.audited(set), bench.buffers.audited(set));
            QCOMPARE(twin.seedOf(set), bench.buffers.seedOf(set));
            for (const HostTensor &tensor : bench.buffers.tensorsOf(set)) {
                if (tensor.role != workload::Role::Input)
                    continue;
                const Bytes content = heldBy(*bench.session, here[set], tensor);
                QVERIFY(!content.empty());
                QVERIFY(heldBy(*other, there[set], tensor) == content);
            }
        }
    }
}

void TestTimedBuffers::redrawChangesBindings()
{
    Bench bench(8);
    QVERIFY(bench.buffers.allocateWorkspaces("candidate", planWithWorkspaces()));
    const auto addresses = [&bench](std::uint64_t key) {
        if (!bench.redraw(key))
            qFatal("cannot redraw");
        std::map<std::string, std::vector<BufferId>> order;
        for (const BufferSet &set : bench.buffers.bindings("candidate")) {
            for (const auto &[name, binding] : set)
                order[name].push_back(binding.buffer);
        }
        return order;
    };
    const auto first = addresses(1);
    const auto again = addresses(1);
    const auto second = addresses(2);
    QVERIFY(first == again); // it follows from the key alone
    for (const char *name : {"x", "y", "scratch", "sums"}) {
        QVERIFY2(first.at(name) != second.at(name), name);
        auto a = first.at(name);
        auto b = second.at(name);
        std::sort(a.begin(), a.end());
        std::sort(b.begin(), b.end());
        QVERIFY2(a == b, name); // the same buffers, in another order
    }
    QVERIFY(!bench.buffers.bindings("parent").front().contains("scratch"));
}

void TestTimedBuffers::offsetsStayAsTheyAre()
{
    Bench bench(7, true);
    QVERIFY(bench.redraw(3));
    QVERIFY(bench.buffers.hasIntegers());
    for (std::size_t set = 0; set < 7; ++set) {
        const auto tensors = bench.buffers.tensorsOf(set);
        const auto &seeds = bench.contents[bench.buffers.seedOf(set) - 100]->tensors;
        QVERIFY(tensors[0].bytes == seeds[0].bytes);
        QCOMPARE(tensors[1].bytes == seeds[1].bytes, bench.buffers.audited(set));
    }
}

void TestTimedBuffers::fillsAreOutputsAndOpenWorkspaces()
{
    Bench bench(4);
    QVERIFY(bench.buffers.allocateWorkspaces("candidate", planWithWorkspaces()));
    QVERIFY(bench.redraw(11));
    const auto sets = bench.buffers.bindings("candidate");
    const FillSets fills = bench.buffers.fills("candidate");
    QCOMPARE(fills.size(), sets.size());
    for (std::size_t set = 0; set < sets.size(); ++set) {
        std::map<BufferId, std::size_t> filled;
        for (const FillRegion &region : fills[set]) {
            filled[region.buffer] = region.bytes;
            QCOMPARE(region.offsetBytes, redZoneBytes);
        }
        QCOMPARE(filled.size(), std::size_t{2}); // not x, and not sums, which the backend clears
        QCOMPARE(filled.at(sets[set].at("y").buffer), std::size_t{240});
        QCOMPARE(filled.at(sets[set].at("scratch").buffer), std::size_t{48});
    }
}

void TestTimedBuffers::largeWorkspacesAreShared()
{
    Bench bench(5);
    kernel::ResolvedPlan plan;
    plan.workspaces = {{"large", DType::U8, {170 << 20}, kernel::WorkspaceInit::Poison}};
    QVERIFY(bench.buffers.allocateWorkspaces("candidate", plan));
    for (const std::uint64_t key : {1u, 2u}) {
        QVERIFY(bench.redraw(key));
        std::map<BufferId, int> sets;
        for (const BufferSet &set : bench.buffers.bindings("candidate"))
            ++sets[set.at("large").buffer];
        QCOMPARE(sets.size(), std::size_t{3}); // in 512 MiB
        QVERIFY(std::all_of(sets.begin(), sets.end(), [](const auto &entry) { return entry.second <= 2; }));
    }
}

void TestTimedBuffers::inspectionSeesChanges()
{
    Bench bench(5);
    QVERIFY(bench.redraw(4));
    std::size_t set = 0;
    while (!bench.buffers.audited(set))
        ++set;
    auto finding = bench.buffers.inspect(set, "candidate");
    QVERIFY(finding && *finding);
    QCOMPARE((*finding)->kind, Finding::Kind::Mismatch); // nobody computed y
    const BufferSet bindings = bench.buffers.bindings("candidate")[set];
    const auto overwrite = [&](const char *tensor, std::size_t at) {
        const auto got = bench.session->download(bindings.at(tensor).buffer, 3 * redZoneBytes).value();
        std::vector<std::byte> image(got.begin(), got.end());
        image[at] ^= std::byte{1};
        const auto room = bench.session->staging(image.size()).value();
        std::copy(image.begin(), image.end(), room.begin());
        QVERIFY(bench.session->uploadStaged(bindings.at(tensor).buffer, image.size()));
    };
    overwrite("x", redZoneBytes + 25); // row 1, column 1
    finding = bench.buffers.inspect(set, "candidate");
    QVERIFY(finding && *finding);
    QCOMPARE((*finding)->kind, Finding::Kind::InputChanged);
    QCOMPARE((*finding)->element, std::string("x[1, 1]"));
    overwrite("y", redZoneBytes - 1);
    finding = bench.buffers.inspect(set, "candidate");
    QVERIFY(finding && *finding);
    QCOMPARE((*finding)->kind, Finding::Kind::RedZone);
    QVERIFY((*finding)->redZone.before);
}

void TestTimedBuffers::aSetForEachSeedAtMost()
{
    Bench bench(4);
    QVERIFY(bench.redraw(1));
    std::set<std::uint64_t> seeds;
    for (std::size_t set = 0; set < 4; ++set) {
        if (bench.buffers.audited(set))
            QVERIFY(seeds.insert(bench.buffers.seedOf(set)).second);
    }
    QCOMPARE(seeds.size(), std::size_t{2}); // half of the sets have content that is made anew
}

void TestTimedBuffers::onADeviceNoContentComesTwice()
{
    Bench bench(6, false, 3, kernel::DeviceKind::Cuda);
    QVERIFY(bench.buffers.redraw(9));
    for (std::size_t set = 0; set < 6; ++set)
        QVERIFY(!bench.buffers.audited(set));
    for (const auto &ranges : bench.buffers.contents())
        QCOMPARE(ranges.size(), std::size_t{1}); // every set's x is made anew for each sample
    std::set<Bytes> seen;
    for (const std::uint64_t content : {1u, 2u, 3u}) {
        bench.buffers.setContent(content);
        for (std::size_t set = 0; set < 6; ++set) {
            const auto made = bench.buffers.tensorsOf(set);
            QVERIFY(seen.insert(Bytes(made.front().bytes.begin(), made.front().bytes.end())).second);
        }
    }
}

void TestTimedBuffers::allWorkspacesAreRefilledOnADevice()
{
    Bench bench(4, false, 3, kernel::DeviceKind::Cuda);
    QVERIFY(bench.buffers.allocateWorkspaces("candidate", planWithWorkspaces()));
    QVERIFY(bench.buffers.allocateWorkspaces("copy", planWithWorkspaces()));
    QVERIFY(bench.buffers.redraw(11));
    const FillSets fills = bench.buffers.fills("candidate");
    const auto own = bench.buffers.bindings("candidate");
    const auto other = bench.buffers.bindings("copy");
    for (std::size_t set = 0; set < fills.size(); ++set) {
        std::map<BufferId, bool> written;
        for (const FillRegion &region : fills[set])
            written[region.buffer] = region.written;
        QCOMPARE(written.size(), std::size_t{5}); // y, and two workspaces of each
        for (const char *name : {"y", "scratch", "sums"})
            QVERIFY(written.at(own[set].at(name).buffer));
        for (const char *name : {"scratch", "sums"})
            QVERIFY(!written.at(other[set].at(name).buffer));
    }
}

void TestTimedBuffers::knownContentsComeAndGo_data()
{
    QTest::addColumn<bool>("device");
    QTest::newRow("processor") << false;
    QTest::newRow("device") << true;
}

void TestTimedBuffers::knownContentsComeAndGo()
{
    QFETCH(bool, device);
    const workload::Workload workload = rows(true);
    const auto contents = instances(workload, 2);
    const CaseInstancePtr hard = makeInstance(workload, workload.cases.front(), 777).value();
    const auto session = startMemory(device ? kernel::DeviceKind::Cuda : kernel::DeviceKind::OpenCl);
    TimedBuffers buffers(*session, workload, contents, nullptr, {hard});
    QVERIFY(buffers.allocate(5));
    QVERIFY(buffers.redraw(3));
    QCOMPARE(buffers.knownCount(), std::size_t{3});
    QCOMPARE(buffers.seedCount(), std::size_t{2});
    QCOMPARE(buffers.known(2).seed, std::uint64_t{777});
    const auto sets = buffers.bindings("candidate");
    const auto bytesOf = [&](std::size_t set, const char *tensor, std::size_t bytes) {
        const BufferBinding at = sets[set].at(tensor);
        const auto image = session->download(at.buffer, bytes, at.offsetBytes).value();
        return Bytes(image.begin(), image.end());
    };
    const Bytes offsets = bytesOf(4, "o", 16);
    QVERIFY(session->copy(buffers.knownRanges(4, 2)));
    QVERIFY(bytesOf(4, "x", 240) == Bytes(hard->tensors[1].bytes.begin(), hard->tensors[1].bytes.end()));
    QVERIFY(bytesOf(4, "o", 16) == Bytes(hard->tensors[0].bytes.begin(), hard->tensors[0].bytes.end()));
    const auto finding = buffers.inspectKnown(4, "candidate", 2, true);
    QVERIFY(finding && *finding);
    QCOMPARE((*finding)->kind, Finding::Kind::Mismatch); // nobody computed y, and the inputs are right
    QVERIFY(buffers.restore({4}));
    QVERIFY(bytesOf(4, "o", 16) == offsets);
}

void TestTimedBuffers::repeats_data()
{
    QTest::addColumn<double>("runNs");
    QTest::addColumn<std::size_t>("sets");
    QTest::addColumn<double>("sampleNs");
    QTest::addColumn<double>("rotationNs");
    QTest::addColumn<int>("expected");
    QTest::newRow("short: each set once") << 1e4 << std::size_t{48} << 200e3 << 50e6 << 48;
    QTest::newRow("at the limit of a rotation") << 1e6 << std::size_t{50} << 1e6 << 50e6 << 50;
    QTest::newRow("long: about a sample") << 2e6 << std::size_t{50} << 7e6 << 50e6 << 4;
    QTest::newRow("a rotation is no sample") << 2e6 << std::size_t{20} << 7e6 << 7e6 << 4;
    QTest::newRow("longer than a sample") << 60e6 << std::size_t{2} << 200e3 << 50e6 << 1;
    QTest::newRow("no set twice") << 1e6 << std::size_t{60} << 1e9 << 50e6 << 60;
    QTest::newRow("no time at all") << 0.0 << std::size_t{8} << 200e3 << 50e6 << 8;
    QTest::newRow("one set") << 5.0 << std::size_t{1} << 200e3 << 50e6 << 1;
}

void TestTimedBuffers::repeats()
{
    QFETCH(double, runNs);
    QFETCH(std::size_t, sets);
    QFETCH(double, sampleNs);
    QFETCH(double, rotationNs);
    QTEST(repeatsFor(runNs, sets, sampleNs, rotationNs), "expected");
}

void TestTimedBuffers::nearSidesHaveTheSameSamples()
{
    RoundState state;
    state.sets = 48;
    state.slowRotationNs = 0;
    std::vector<TimedSubject> subjects(4);
    const std::vector<double> estimates = {10e3, 12e3, 39e3, 600e3};
    for (std::size_t i = 0; i < subjects.size(); ++i)
        subjects[i].estimateNs = estimates[i];
    setRepeats(subjects, state);
    QCOMPARE(subjects[0].repeats, 48);
    QCOMPARE(subjects[1].repeats, 48);
    QCOMPARE(subjects[2].repeats, 48);
    QCOMPARE(subjects[3].repeats, 1); // 28 ms a rotation, and only its share of the ratio's certainty

    // On both sides of the longest rotation: neither has a graph of many runs while the other has one of few.
    for (TimedSubject &subject : subjects)
        subject.estimateNs = 1.04e6;
    subjects[1].estimateNs = 1.05e6;
    setRepeats(subjects, state);
    for (const TimedSubject &subject : subjects)
        QCOMPARE(subject.repeats, 1);
}

void TestTimedBuffers::clocksOfOneSideHaveToAgree()
{
    const auto clocks = [](std::vector<double> mhz) {
        std::vector<TimedSample> samples(mhz.size());
        for (std::size_t i = 0; i < mhz.size(); ++i)
            samples[i].clockMhz = mhz[i];
        return samples;
    };
    const std::vector<std::size_t> order = {0, 1, 1, 0};
    QVERIFY(isSteady(clocks({1980, 1980, 1980, 1980}), order));
    QVERIFY(isSteady(clocks({1980, 1755, 1755, 1980}), order)); // the other side draws more power
    QVERIFY(!isSteady(clocks({1980, 1980, 1755, 1980}), order));
    QVERIFY(!isSteady(clocks({1980, 1980, 1980, 1900}), order));
    QVERIFY(isSteady(clocks({0, 0, 0, 0}), order));
}

void TestTimedBuffers::fillWordsAreNaNs()
{
    std::set<std::uint32_t> seen;
    for (std::uint64_t key = 0; key < 400; ++key) {
        const std::uint32_t word = fillWord(key * 0x9e3779b97f4a7c15ull);
        seen.insert(word);
        const std::uint32_t words[2] = {word, word};
        const auto *bytes = reinterpret_cast<const std::byte *>(words);
        for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::TF32, DType::F64}) {
            for (std::size_t i = 0; i < sizeof words / kernel::sizeOf(dtype); ++i)
                QVERIFY2(std::isnan(kernel::loadElement(bytes, dtype, i)), kernel::toString(dtype));
        }
        // Of a word's bytes every second is an fp8 NaN: no element of a row survives together with its neighbour.
        for (const DType dtype : {DType::F8E4M3, DType::F8E5M2}) {
            QVERIFY(std::isnan(kernel::loadElement(bytes, dtype, 1)));
            QVERIFY(std::isnan(kernel::loadElement(bytes, dtype, 3)));
        }
    }
    QVERIFY(seen.size() > 100);
}

QTEST_GUILESS_MAIN(TestTimedBuffers)
#include "tst_timedbuffers.moc"
