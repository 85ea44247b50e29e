// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/rawbytes.h"

#include <QtTest>

#include <cstring>
#include <utility>

using namespace klineage;

class TestKeptBlocks : public QObject
{
    Q_OBJECT
private slots:
    void cleanup() { KeptBlocks::drop(); }

    void aBlockOfTheSameSizeIsTakenAgain()
    {
        constexpr std::size_t bytes = 3 * KeptBlocks::leastBytes;
        void *const first = KeptBlocks::take(bytes);
        std::memset(first, 1, bytes);
        QCOMPARE(KeptBlocks::keptBytes(), std::size_t{0});
        KeptBlocks::give(first, bytes);
        QCOMPARE(KeptBlocks::keptBytes(), bytes);
        void *const other =
            KeptBlocks::take(bytes - KeptBlocks::leastBytes); // of another size: is not split off
        QVERIFY(other != first);
        void *const again = KeptBlocks::take(bytes - 5); // that much is rounded up to the same
        QCOMPARE(again, first);
        QCOMPARE(KeptBlocks::keptBytes(), std::size_t{0});
        KeptBlocks::give(again, bytes - 5);
        KeptBlocks::give(other, bytes - KeptBlocks::leastBytes);
        KeptBlocks::drop();
        QCOMPARE(KeptBlocks::keptBytes(), std::size_t{0});
    }

    void vectorsUseThem()
    {
        constexpr std::size_t count = KeptBlocks::leastBytes;
        const std::byte *place = nullptr;
        {
            RawBytes bytes(count);
            bytes.front() = bytes.back() = std::byte{7};
            place = bytes.data();
            RawBytes moved = std::move(bytes);
            QCOMPARE(static_cast<const void *>(moved.data()), static_cast<const void *>(place));
        }
        QCOMPARE(KeptBlocks::keptBytes(), count);
        const RawVector<float> floats(count / sizeof(float));
        QCOMPARE(static_cast<const void *>(floats.data()), static_cast<const void *>(place));
        const RawBytes copied = RawBytes(3, std::byte{5}); // small ones are ordinary
        QCOMPARE(copied[2], std::byte{5});
        QCOMPARE(KeptBlocks::keptBytes(), std::size_t{0});
    }
};

QTEST_GUILESS_MAIN(TestKeptBlocks)
#include "tst_keptblocks.moc"
