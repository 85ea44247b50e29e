// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where the copies of what timed runs read and write lie, what is between them, and decoys, in a worker that has memory and nothing else.
#include "core/gate/timing/copyplaces.h"
#include "core/gate/timing/decoys.h"

#include "timedbench.h"

#include <QtTest>

#include <algorithm>
#include <cstring>
#include <set>

using namespace klineage;
using namespace klineage::gate;
using namespace klineage::test;
using kernel::DType;

class TestTimedPlaces : public QObject
{
    Q_OBJECT
private slots:
    void inOneBufferWhereThatIsFaster();
    void copiesLieWhereNobodyKnows();
    void whatLiesBetweenCopiesIsGuarded();
    void whatAByteBelongsTo();
    void decoys();
    void placesOfDecoys();
};

void TestTimedPlaces::inOneBufferWhereThatIsFaster()
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

void TestTimedPlaces::copiesLieWhereNobodyKnows()
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

void TestTimedPlaces::whatLiesBetweenCopiesIsGuarded()
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

void TestTimedPlaces::whatAByteBelongsTo()
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

void TestTimedPlaces::decoys()
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

void TestTimedPlaces::placesOfDecoys()
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

QTEST_GUILESS_MAIN(TestTimedPlaces)
#include "tst_timedplaces.moc"
