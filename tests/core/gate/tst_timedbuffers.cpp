// SPDX-License-Identifier: GPL-3.0-or-later
//
// What timed runs read and write, in a worker that has memory and nothing else; and how the runs are laid out.
#include "core/gate/timing/copyplaces.h"
#include "core/gate/timing/decoys.h"
#include "core/gate/timing/rounds.h"
#include "core/gate/timing/timedbuffers.h"

#include "gatefixture.h"
#include "tests/paths.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

using namespace klineage;
using namespace klineage::gate;
using kernel::DType;

namespace {

using Bytes = std::vector<std::byte>;

std::unique_ptr<WorkerSession> startMemory(kernel::DeviceKind device)
{
    auto session = WorkerSession::start(
        {klineage::test::programPath("/klineage-fakeworker"), "memory", "--backend", "any"}, device, 30, {});
    if (!session)
        qFatal("%s", session.error().error.message.c_str());
    return std::move(*session);
}

/// x is 12 × 5 and y alike, or, `structured`, with offsets beside x.
workload::Workload rows(bool structured = false)
{
    const std::string offsets =
        structured ? "[[tensor]]\nname = \"o\"\nrole = \"input\"\ndtype = \"i32\"\nshape = [4]\n"
                     "distribution = { kind = \"offsets\", end = \"R\" }\n"
                   : "";
    return test::parsed(
        ("name = \"rows\"\naxes = [\"R\"]\nflops = \"R\"\nbytes = \"R\"\n" + offsets
         + "[[tensor]]\nname = \"x\"\nrole = \"input\"\ndtype = \"f32\"\nshape = [\"R\", 5]\n"
           "[[tensor]]\nname = \"y\"\nrole = \"output\"\ndtype = \"f32\"\nshape = [\"R\", 5]\n"
           "[[case]]\nname = \"timed\"\naxes = { R = 12 }\n"
           "[oracle]\nname = \"silu\"\nargs = { in = \"x\", out = \"y\" }\n")
            .c_str());
}

std::vector<CaseInstancePtr> instances(const workload::Workload &workload, int count)
{
    std::vector<CaseInstancePtr> made;
    for (int i = 0; i < count; ++i)
        made.push_back(
            makeInstance(workload, workload.cases.front(), 100 + static_cast<std::uint64_t>(i)).value());
    return made;
}

/// A device with the buffers of one workload on it.
struct Bench {
    explicit Bench(std::size_t sets, bool structured = false, int seeds = 3,
                   kernel::DeviceKind device = kernel::DeviceKind::OpenCl)
        : workload(rows(structured))
        , contents(instances(workload, seeds))
        , session(startMemory(device))
        , buffers(*session, workload, contents)
    {
        if (!buffers.allocate(sets))
            qFatal("cannot allocate");
    }
    /// With the contents made that the worker makes before samples.
    bool redraw(std::uint64_t key)
    {
        if (!buffers.redraw(key))
            return false;
        for (const std::vector<CopyRange> &ranges : buffers.contents()) {
            if (!ranges.empty() && !session->copy(ranges))
                return false;
        }
        return true;
    }
    Bytes content(const BufferSet &set, const std::string &tensor) const
    {
        const BufferBinding binding = set.at(tensor);
        const std::size_t bytes = 12 * 5 * sizeof(float);
        const auto image = session->download(binding.buffer, bytes, binding.offsetBytes);
        if (!image)
            qFatal("%s", image.error().error.message.c_str());
        return {image->begin(), image->end()};
    }
    Bytes input(std::size_t content) const
    {
        const auto &tensors = contents[content]->tensors;
        const auto x = std::find_if(tensors.begin(), tensors.end(),
                                    [](const HostTensor &tensor) { return tensor.name == "x"; });
        return {x->bytes.begin(), x->bytes.end()};
    }

    workload::Workload workload;
    std::vector<CaseInstancePtr> contents;
    std::unique_ptr<WorkerSession> session;
    TimedBuffers buffers;
};

std::multiset<Bytes> rowsOf(const Bytes &content)
{
    std::multiset<Bytes> rows;
    for (auto row = content.begin(); row != content.end(); row += 5 * sizeof(float))
        rows.insert(Bytes(row, row + 5 * sizeof(float)));
    return rows;
}

kernel::ResolvedPlan planWithWorkspaces()
{
    kernel::ResolvedPlan plan;
    plan.workspaces = {{"scratch", DType::F32, {3, 4}, kernel::WorkspaceInit::Poison},
                       {"sums", DType::F32, {8}, kernel::WorkspaceInit::Zero}};
    return plan;
}

} // namespace

class TestTimedBuffers : public QObject
{
    Q_OBJECT
private slots:
    void auditedSetsHoldASeedsContent();
    void noTwoSetsShareContent();
    void everySetIsNew();
    void redrawChangesBindings();
    void offsetsStayAsTheyAre();
    void fillsAreOutputsAndOpenWorkspaces();
    void largeWorkspacesAreShared();
    void inspectionSeesChanges();
    void aSetForEachSeedAtMost();
    void inOneBufferWhereThatIsFaster();
    void copiesLieWhereNobodyKnows();
    void whatLiesBetweenCopiesIsGuarded();
    void onADeviceNoContentComesTwice();
    void allWorkspacesAreRefilledOnADevice();
    void whatAByteBelongsTo();
    void knownContentsComeAndGo_data();
    void knownContentsComeAndGo();
    void decoys();
    void placesOfDecoys();
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

/// How many sets there are does not depend on the workspaces: of large ones there are fewer.
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

/// As it is in buffers of their own: content, red zones between, and what is found there.
void TestTimedBuffers::inOneBufferWhereThatIsFaster()
{
    Bench bench(6, false, 3, kernel::DeviceKind::Cuda);
    QVERIFY(bench.buffers.allocateWorkspaces("candidate", planWithWorkspaces()));
    QVERIFY(bench.redraw(9));
    const auto sets = bench.buffers.bindings("candidate");
    const FillSets fills = bench.buffers.fills("candidate");
    const OutputSets outputs = bench.buffers.outputs();
    for (const char *name : {"x", "y", "scratch", "sums"}) {
        std::set<std::size_t> offsets;
        for (const BufferSet &set : sets) {
            QCOMPARE(set.at(name).buffer, sets.front().at(name).buffer);
            QCOMPARE(set.at(name).offsetBytes % redZoneBytes, std::size_t{0});
            offsets.insert(set.at(name).offsetBytes);
        }
        QCOMPARE(offsets.size(), sets.size());
        QVERIFY(*offsets.begin() >= redZoneBytes);
    }
    for (std::size_t set = 0; set < sets.size(); ++set) {
        const BufferBinding y = sets[set].at("y");
        QVERIFY(std::any_of(fills[set].begin(), fills[set].end(), [&](const FillRegion &region) {
            return region.buffer == y.buffer && region.offsetBytes == y.offsetBytes && region.bytes == 240;
        }));
        QCOMPARE(outputs.sets[set].front().offsetBytes, y.offsetBytes);
        const std::size_t content = set % bench.buffers.knownCount();
        QVERIFY(bench.session->copy(bench.buffers.knownRanges(set, content)));
        QVERIFY(bench.content(sets[set], "x") == bench.input(content));
        const auto finding = bench.buffers.inspectKnown(set, "candidate", content, true);
        QVERIFY(finding && *finding);
        QCOMPARE((*finding)->kind, Finding::Kind::Mismatch); // red zones and inputs are as they should be
    }
}

void TestTimedBuffers::copiesLieWhereNobodyKnows()
{
    constexpr std::size_t page = std::size_t{2} << 20;
    for (const std::size_t bytes : {3 * redZoneBytes, page, 3 * page - redZoneBytes}) {
        const CopyPlaces places = drawCopyPlaces(bytes, 200);
        QCOMPARE(places.offsets.size(), std::size_t{200});
        QCOMPARE(places.placeBytes, bytes <= page ? page : 3 * page);
        QCOMPARE(places.placeBytes, placeBytes(bytes));
        std::set<std::size_t> gaps;
        std::size_t end = 0;
        for (const std::size_t offset : places.offsets) {
            QCOMPARE(offset % page, std::size_t{0});
            QVERIFY(offset >= end + page); // an empty page at least
            gaps.insert(offset - end);
            end = offset + places.placeBytes;
        }
        QVERIFY(places.rangeBytes >= end + page);
        QVERIFY(gaps.size() > 60); // of 253, 200 times
        QVERIFY(drawCopyPlaces(bytes, 200).offsets != places.offsets);
    }

    // The tensors of one set do not lie alike, nor do those of two trials.
    const auto places = [](TimedBuffers &buffers) {
        std::vector<std::vector<std::size_t>> all;
        const Guards guards = buffers.guards().value();
        for (const GuardedCopies &guarded : guards.copies)
            all.push_back(guarded.places);
        return all;
    };
    Bench one(20, false, 3, kernel::DeviceKind::Cuda);
    Bench other(20, false, 3, kernel::DeviceKind::Cuda);
    QVERIFY(places(one.buffers)[0] != places(one.buffers)[1]);
    QVERIFY(places(one.buffers)[0] != places(other.buffers)[0]);
    QVERIFY(places(one.buffers) == places(one.buffers));
}

void TestTimedBuffers::whatLiesBetweenCopiesIsGuarded()
{
    constexpr std::size_t piece = std::size_t{2} << 20;
    Bench bench(20, false, 3, kernel::DeviceKind::Cuda);
    QVERIFY(bench.buffers.allocateWorkspaces("candidate", planWithWorkspaces()));
    const auto guards = bench.buffers.guards();
    QVERIFY(guards);
    QCOMPARE(guards->copies.size(), std::size_t{4}); // x, y, scratch, sums
    for (const GuardedCopies &guarded : guards->copies) {
        QCOMPARE(guarded.places.size(), std::size_t{20});
        std::map<std::size_t, std::size_t> covered; // of the buffer: begin -> bytes
        for (const std::size_t place : guarded.places) {
            covered[place] = guarded.placeBytes;
            const auto copy = bench.session->download(guarded.buffer, guarded.placeBytes, place);
            QVERIFY(copy);
            const Bytes image(copy->begin(), copy->end());
            const auto zones = bench.session->download(guarded.zones, guarded.placeBytes - guarded.bytes, 0);
            QVERIFY(zones);
            const auto front = static_cast<std::ptrdiff_t>(guarded.offsetBytes);
            const auto behind = static_cast<std::ptrdiff_t>(guarded.offsetBytes + guarded.bytes);
            QVERIFY(std::equal(image.begin(), image.begin() + front, zones->begin()));
            QVERIFY(std::equal(image.begin() + behind, image.end(), zones->begin() + front, zones->end()));
        }
        // What lies behind each up to the end of what the driver maps: each byte once.
        for (const FillRegion &region : guards->slack) {
            if (region.buffer == guarded.buffer)
                QVERIFY(covered.emplace(region.offsetBytes, region.bytes).second);
        }
        QCOMPARE(covered.size(), std::size_t{2 * 20});
        for (auto one = covered.begin(); one != covered.end(); ++one) {
            const std::size_t end = one->first + one->second;
            QCOMPARE(one->first % piece, std::size_t{0});
            ++one;
            QCOMPARE(one->first, end);
            QCOMPARE((one->first + one->second) % piece, std::size_t{0});
        }
    }
    QCOMPARE(guards->slack.size(),
             std::size_t{4 * 20 + 3 + 4}); // of the copies, of three contents of x, of the zones
    QVERIFY(bench.session->setGuards(*guards));
    QVERIFY(Bench(20).buffers.guards()->copies.empty()); // buffers that lie apart

    // Elements of two bytes, an odd number of them: what is refilled begins at a whole word nevertheless.
    workload::Workload narrow = rows();
    narrow.tensors.front().dtype = DType::F16;
    narrow.cases.front().axes["R"] = 13;
    const auto contents = instances(narrow, 2);
    QCOMPARE(contents.front()->tensors.front().bytes.size() % 4, std::size_t{2});
    const auto session = startMemory(kernel::DeviceKind::Cuda);
    TimedBuffers odd(*session, narrow, contents);
    QVERIFY(odd.allocate(8));
    const auto oddGuards = odd.guards();
    QVERIFY(oddGuards && !oddGuards->slack.empty());
    for (const FillRegion &region : oddGuards->slack)
        QCOMPARE(region.offsetBytes % 4, std::size_t{0});
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

/// Those of other sides too, which the side's runs may not write to.
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

void TestTimedBuffers::whatAByteBelongsTo()
{
    Bench bench(4, false, 3, kernel::DeviceKind::Cuda);
    QVERIFY(bench.buffers.allocateWorkspaces("candidate", planWithWorkspaces()));
    QVERIFY(bench.buffers.redraw(11));
    const auto sets = bench.buffers.bindings("candidate");
    for (std::size_t set = 0; set < sets.size(); ++set) {
        for (const char *name : {"x", "y", "scratch"}) {
            BufferBinding byte = sets[set].at(name);
            byte.offsetBytes += 5;
            TimedBuffers::Spot spot = bench.buffers.spotOf(byte);
            QCOMPARE(spot.name, std::string(name));
            QCOMPARE(spot.set, set);
            QVERIFY(spot.within);
            byte.offsetBytes -= 6; // the red zone before it
            spot = bench.buffers.spotOf(byte);
            QCOMPARE(spot.name, std::string(name));
            QVERIFY(!spot.within);
        }
    }
    BufferBinding behind = sets[0].at("y");
    behind.offsetBytes += std::size_t{1} << 20;
    QVERIFY(bench.buffers.spotOf(behind).name.empty());
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

void TestTimedBuffers::decoys()
{
    Bench bench(40);
    QVERIFY(bench.buffers.redraw(3));
    const auto all = drawContents(bench.buffers, true);
    QCOMPARE(all.size(), std::size_t{3});
    QCOMPARE(drawContents(bench.buffers, false).size(), std::size_t{1}); // there is no hard one
    int early = 0;
    int changed = 0;
    int inOnePlace = 0;
    int inSeveralSets = 0;
    int spoiltSets = 0;
    std::set<std::size_t> sets;
    std::set<std::size_t> contents;
    for (int i = 0; i < 300; ++i) {
        const TimedRun usual{1, 30, 40, 0x7ff17ff1u, true, 5};
        const Decoy decoy = drawDecoy(usual, bench.buffers, all);
        QCOMPARE(decoy.run.first, usual.first);
        QCOMPARE(decoy.run.content, usual.content);
        QVERIFY(!decoy.known.empty() && decoy.known.size() <= all.size());
        changed += decoy.run.isSplit() ? 1 : 0;
        QCOMPARE(!decoy.run.then.empty(), decoy.run.isSplit());
        const std::size_t count = decoy.run.known.size() - decoy.known.size(); // of x
        QVERIFY(count <= 16);
        // Behind them, what spoils the inputs of sets that have been run.
        QCOMPARE(decoy.run.then.size(), count + decoy.spoilt.size());
        for (const std::size_t set : decoy.spoilt) {
            QVERIFY(decoy.known.contains(set));
            QVERIFY((set + 10) % 40 < static_cast<std::size_t>(decoy.run.midway));
            const CopyRange whole = bench.buffers.knownRanges(set, decoy.known.at(set)).front();
            QVERIFY(std::any_of(decoy.run.then.begin() + static_cast<std::ptrdiff_t>(count),
                                decoy.run.then.end(), [&](const CopyRange &range) {
                                    return range.to == whole.to && range.toOffset >= whole.toOffset
                                           && range.toOffset < whole.toOffset + whole.bytes
                                           && range.from != whole.from;
                                }));
        }
        spoiltSets += decoy.spoilt.empty() ? 0 : 1;
        const auto changes = decoy.run.known.end() - static_cast<std::ptrdiff_t>(count);
        std::set<std::size_t> changedSets;
        for (std::size_t change = 0; change < count; ++change) {
            // Behind the content that it is of; gone before the set's turn.
            const CopyRange &before = changes[static_cast<std::ptrdiff_t>(change)];
            const CopyRange &then = decoy.run.then[change];
            QVERIFY(before.to == then.to && before.toOffset == then.toOffset && before.bytes == then.bytes);
            QVERIFY(before.from != then.from && before.fromOffset == then.fromOffset);
            const auto whole = std::find_if(decoy.run.known.begin(), changes, [&](const CopyRange &range) {
                return range.to == then.to && range.toOffset <= then.toOffset
                       && then.toOffset + then.bytes <= range.toOffset + range.bytes;
            });
            QVERIFY(whole != changes);
            QCOMPARE(whole->from, then.from);
            const auto set = std::find_if(decoy.known.begin(), decoy.known.end(), [&](const auto &known) {
                return bench.buffers.knownRanges(known.first, known.second).front().toOffset
                           == whole->toOffset
                       && bench.buffers.knownRanges(known.first, known.second).front().to == whole->to;
            });
            QVERIFY(set != decoy.known.end());
            QVERIFY((set->first + 10) % 40 >= static_cast<std::size_t>(decoy.run.midway));
            changedSets.insert(set->first);
        }
        inOnePlace += count == 1 ? 1 : 0;
        inSeveralSets += changedSets.size() > 1 ? 1 : 0;
        early += decoy.run.repeats < 40 ? 1 : 0;
        QVERIFY(decoy.run.repeats == 40 || decoy.run.around == 40);
        std::set<std::size_t> own; // a content that came twice would tell it from samples that are timed
        for (const auto &[set, content] : decoy.known) {
            QVERIFY((set + 10) % 40 < static_cast<std::size_t>(decoy.run.repeats)); // one that is run
            QVERIFY(own.insert(content).second);
            sets.insert(set);
            contents.insert(content);
        }
    }
    QVERIFY(early > 50 && early < 150);
    QVERIFY(changed > 150 && changed < 270);
    QVERIFY(inOnePlace > 0 && inOnePlace < changed / 2);
    QVERIFY(inSeveralSets > 30);
    QVERIFY(spoiltSets > 30);
    QCOMPARE(sets.size(), std::size_t{40});
    QCOMPARE(contents.size(), std::size_t{3});
    QCOMPARE(drawDecoy({1, 3, 1, 1, true, 5}, bench.buffers, all).known.count(3), std::size_t{1});
}

void TestTimedBuffers::placesOfDecoys()
{
    std::set<std::size_t> places;
    std::set<std::size_t> counts;
    for (int i = 0; i < 400; ++i) {
        const auto drawn = drawPlaces(6);
        QVERIFY(!drawn.empty());
        counts.insert(drawn.size());
        places.insert(drawn.begin(), drawn.end());
    }
    QCOMPARE(places, (std::set<std::size_t>{0, 1, 2, 3, 4, 5, 6})); // the first one, and behind the last
    QVERIFY(counts.size() > 2);
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
