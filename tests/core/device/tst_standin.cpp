// SPDX-License-Identifier: GPL-3.0-or-later
//
// What stands between PoCL and a candidate: the functions that it calls, and the memory that it gets.
#include "core/device/opencl/fills.h"
#include "core/device/opencl/guardedmemory.h"
#include "core/device/opencl/standin.h"

#include <QTest>

#include <algorithm>
#include <csignal>
#include <dlfcn.h>
#include <set>
#include <sys/wait.h>
#include <tuple>
#include <unistd.h>

using namespace klineage::gate::opencl;

namespace {

using Group = std::tuple<std::size_t, std::size_t, std::size_t>;
std::vector<Group> called;

void remember(void *, void *, std::size_t x, std::size_t y, std::size_t z)
{
    called.emplace_back(x, y, z);
}

using GroupFunction = void (*)(void *, void *, std::size_t, std::size_t, std::size_t);

/// As PoCL launches 5 × 3 × 2 work-groups.
std::vector<Group> launch()
{
    const auto function = reinterpret_cast<GroupFunction>(
        standIn("_pocl_kernel_k_workgroup", reinterpret_cast<void *>(&remember)));
    called.clear();
    for (std::size_t z = 0; z < 2; ++z) {
        for (std::size_t y = 0; y < 3; ++y) {
            for (std::size_t x = 0; x < 5; ++x)
                function(nullptr, nullptr, x, y, z);
        }
    }
    return called;
}

/// The signal that writing there ends a process with; 0: none.
int signalOfWriting(std::byte *place)
{
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGSEGV, SIG_DFL);
        *static_cast<volatile std::byte *>(place) = std::byte{1};
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

} // namespace

class TestStandIn : public QObject
{
    Q_OBJECT
private slots:
    /// What a kernel could keep there would outlast every launch.
    void nobodyWritesToAKernelsLibrary()
    {
        void *library = ::dlopen(qgetenv("KLINEAGE_KERNEL_STUB").constData(), RTLD_NOW | RTLD_LOCAL);
        QVERIFY2(library, library ? "" : ::dlerror());
        auto *room = static_cast<std::byte *>(::dlsym(library, "klineage_stub_room"));
        QVERIFY(room);
        QCOMPARE(signalOfWriting(room), 0);
        void *function = ::dlsym(library, "_pocl_kernel_stub_workgroup");
        QVERIFY(function);
        QVERIFY(standIn("_pocl_kernel_stub_workgroup", function) != function);
        QCOMPARE(signalOfWriting(room), SIGSEGV);
        QCOMPARE(*room, std::byte{1});
    }

    /// Three sets, of which the first and the last have a workspace together.
    void whatIsSharedIsFilledBetweenRuns()
    {
        using namespace klineage::gate;
        Fills fills;
        QVERIFY(fills.empty() && !fills.areShared());
        fills.set({{{1, 0, 8}, {9, 0, 64}}, {{1, 256, 8}, {9, 256, 64}}, {{1, 512, 8}, {9, 0, 64}}});
        QVERIFY(fills.areShared());
        TimedRun run;
        run.first = 1;
        run.repeats = 3;
        QCOMPARE(fills.before(run).size(), std::size_t{5});
        QVERIFY(fills.between(run, 1).empty());
        const auto again = fills.between(run, 2);
        QCOMPARE(again.size(), std::size_t{1});
        QCOMPARE(again.front().buffer, BufferId{9});
        QCOMPARE(again.front().offsetBytes, std::size_t{0});
        fills.set({{{1, 0, 8}}, {{1, 256, 8}}});
        QVERIFY(!fills.areShared() && fills.between(run, 1).empty());
    }

    void groupsChangePlaces()
    {
        const std::vector<Group> usual = launch();
        std::set<std::vector<Group>> orders;
        for (const std::uint64_t key : {2ull, 4ull, 7ull, 0x1234567890abcdefull, 0xfedcba9876543211ull}) {
            std::vector<Group> order;
            {
                const StandInsInOrder inOrder({5, 3, 2}, key);
                order = launch();
            }
            orders.insert(order);
            QVERIFY(order != usual || key % 2 != 0);
            std::sort(order.begin(), order.end());
            QCOMPARE(std::unique(order.begin(), order.end()) - order.begin(), std::ptrdiff_t{30});
            QVERIFY(launch() == usual);
        }
        QVERIFY(orders.size() > 2);
        const StandInsInOrder backwards({5, 3, 2}, 2);
        const std::vector<Group> reversed = launch();
        QVERIFY(std::equal(usual.begin(), usual.end(), reversed.rbegin(), reversed.rend()));
    }

    void nothingLiesBesideABuffer_data()
    {
        QTest::addColumn<int>("bytes");
        for (const int bytes : {1, 256, 4096, 12288, 5000})
            QTest::addRow("%d", bytes) << bytes;
    }

    void nothingLiesBesideABuffer()
    {
        QFETCH(int, bytes);
        const auto pages = GuardedPages::make(static_cast<std::size_t>(bytes));
        QVERIFY(pages);
        const auto room = pages->room();
        QVERIFY(room.size() >= static_cast<std::size_t>(bytes));
        QCOMPARE(reinterpret_cast<std::uintptr_t>(room.data()) % 256, std::uintptr_t{0});
        QCOMPARE(signalOfWriting(room.data()), 0);
        QCOMPARE(signalOfWriting(room.data() + room.size() - 1), 0);
        QCOMPARE(signalOfWriting(room.data() + room.size()), SIGSEGV);
        QCOMPARE(pages->slack().data() + pages->slack().size(), room.data());
        QCOMPARE(signalOfWriting(pages->slack().data() - 1), SIGSEGV);
    }

    /// The last one: for good.
    void sealed()
    {
        const std::vector<Group> usual = launch();
        sealStandIns();
        QVERIFY(launch() == usual);
        QVERIFY(!standIn("_pocl_kernel_other_workgroup", reinterpret_cast<void *>(&launch)));
        QVERIFY(standIn("other", reinterpret_cast<void *>(&launch)));
    }
};

QTEST_GUILESS_MAIN(TestStandIn)
#include "tst_standin.moc"
