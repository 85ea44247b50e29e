// SPDX-License-Identifier: GPL-3.0-or-later
//
// The block function is compared with the test vectors of RFC 8439 (2.3.2 and appendix A.1).
#include "core/base/cipherrandom.h"

#include <QtTest>

#include <algorithm>
#include <numeric>
#include <set>

using namespace klineage;

namespace {

using Key = std::array<std::uint32_t, 8>;
using Nonce = std::array<std::uint32_t, 3>;
using Block = std::array<std::uint32_t, 16>;

Block block(const Key &key, std::uint32_t counter, const Nonce &nonce, std::size_t which)
{
    std::array<std::uint32_t, 256> out{};
    chachaBlocks(key, counter, nonce, out);
    Block one{};
    std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(16 * which), 16, one.begin());
    return one;
}

} // namespace

class TestCipherRandom : public QObject
{
    Q_OBJECT

private slots:
    void vectors();
    void anyOrder();
    void seedsAndStreamsDiffer();
    void uniformNumbers();
};

void TestCipherRandom::vectors()
{
    const Key counted{0x03020100, 0x07060504, 0x0b0a0908, 0x0f0e0d0c,
                      0x13121110, 0x17161514, 0x1b1a1918, 0x1f1e1d1c};
    const Block example{0xe4e7f110, 0x15593bd1, 0x1fdd0f50, 0xc47120a3, 0xc7f4d1c7, 0x0368c033,
                        0x9aaa2204, 0x4e6cd4c3, 0x466482d2, 0x09aa9f07, 0x05d7c214, 0xa2028bd9,
                        0xd19c12b5, 0xb94e16de, 0xe883d0cb, 0x4e3c50a2};
    QVERIFY(block(counted, 1, {0x09000000, 0x4a000000, 0}, 0) == example);
    const Block first{0xade0b876, 0x903df1a0, 0xe56a5d40, 0x28bd8653, 0xb819d2bd, 0x1aed8da0,
                      0xccef36a8, 0xc70d778b, 0x7c5941da, 0x8d485751, 0x3fe02477, 0x374ad8b8,
                      0xf4b8436a, 0x1ca11815, 0x69b687c3, 0x8665eeb2};
    const Block second{0xbee7079f, 0x7a385155, 0x7c97ba98, 0x0d082d73, 0xa0290fcb, 0x6965e348,
                       0x3e53c612, 0xed7aee32, 0x7621b729, 0x434ee69c, 0xb03371d5, 0xd539d874,
                       0x281fed31, 0x45fb0a51, 0x1f0ae1ac, 0x6f4d794b};
    QVERIFY(block({}, 0, {}, 0) == first);
    QVERIFY(block({}, 0, {}, 1) == second);
    QVERIFY(block({}, 1, {}, 0) == second);
}

void TestCipherRandom::anyOrder()
{
    CipherRandom ascending(42, 7);
    std::vector<std::uint64_t> bits;
    for (std::uint64_t i = 0; i < 1000; ++i)
        bits.push_back(ascending.bits(i));
    CipherRandom random(42, 7);
    for (const std::uint64_t i : {999u, 0u, 128u, 127u, 500u, 3u})
        QCOMPARE(random.bits(i), bits[i]);
    QVERIFY(random.bits(~std::uint64_t{0}) != random.bits(~std::uint64_t{0} - 1)); // counters have 64 bits
    QVERIFY(random.bits(std::uint64_t{1} << 40) != bits[0]);
}

void TestCipherRandom::seedsAndStreamsDiffer()
{
    std::set<std::uint64_t> seen;
    for (const std::uint64_t seed : {0ull, 1ull, 1ull << 32, 1ull << 63}) {
        for (const std::uint64_t stream : {0ull, 1ull, 1ull << 32}) {
            CipherRandom random(seed, stream);
            QVERIFY(seen.insert(random.bits(0)).second);
        }
    }
}

void TestCipherRandom::uniformNumbers()
{
    CipherRandom random(9);
    double sum = 0;
    for (std::uint64_t i = 0; i < 10000; ++i) {
        const double value = random.uniform(i);
        QVERIFY(value >= 0 && value < 1);
        sum += value;
    }
    QVERIFY(std::abs(sum / 10000 - 0.5) < 0.02);
}

QTEST_GUILESS_MAIN(TestCipherRandom)
#include "tst_cipherrandom.moc"
