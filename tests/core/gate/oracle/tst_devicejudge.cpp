// SPDX-License-Identifier: GPL-3.0-or-later
//
// The judge's kernels as they are, run on the CPU and compared with what the CPU does itself; compiled for a device where there is a
// compiler; and what it does where no memory can be shared.
#include "core/base/random.h"
#include "core/device/backend.h"
#include "core/gate/oracle/devicejudge.h"
#include "core/gate/oracle/kernels.h"
#include "tests/core/gate/oracle/emulator.h"
#include "tests/core/gate/oracle/oracleworkloads.h"
#include "tests/paths.h"

#include <QtTest>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

// NOLINTBEGIN(bugprone-suspicious-include)
#define WIDE 1
namespace kernels {
#include "core/gate/oracle/kernels/elements.cu"
} // namespace kernels
using namespace kernels; // as in the one file that a device gets
namespace same {
#include "core/gate/oracle/kernels/same.cu"
}
#define compare compareHalves // C names are one, whatever their namespace
#define poison poisonHalves
#define TYPE 1
namespace halves {
#include "core/gate/oracle/kernels/compare.cu"
#undef ELEMENTS_OF_BLOCK
#include "core/gate/oracle/kernels/poison.cu"
} // namespace halves
#undef compare
#undef poison
#undef TYPE
#undef ELEMENTS_OF_BLOCK
#undef PIECE
#undef QUIET
#undef MANTISSA
#undef EXPONENT
#define compare compareFloats
#define poison poisonFloats
#define TYPE 0
namespace floats {
#include "core/gate/oracle/kernels/compare.cu"
#undef ELEMENTS_OF_BLOCK
#include "core/gate/oracle/kernels/poison.cu"
} // namespace floats
#undef compare
#undef poison
#undef TYPE
#undef ELEMENTS_OF_BLOCK
#undef PIECE
#undef QUIET
#undef MANTISSA
#undef EXPONENT
#define compare compareBrains
#define poison poisonBrains
#define TYPE 2
namespace brains {
#include "core/gate/oracle/kernels/compare.cu"
#undef ELEMENTS_OF_BLOCK
#include "core/gate/oracle/kernels/poison.cu"
} // namespace brains
#undef compare
#undef poison
#undef TYPE
// NOLINTEND(bugprone-suspicious-include)

using namespace klineage;
using namespace klineage::gate;
using kernel::DType;

namespace {

const std::string binaries = klineage::test::programPath();
constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

int blocks(std::size_t amount, std::size_t block)
{
    return static_cast<int>((amount + block - 1) / block);
}

/// What the kernel for the type comes to.
template <typename Block, typename Kernel>
ComparisonTotals emulated(Kernel kernel, const std::vector<std::byte> &out,
                          const std::vector<double> &expected, double absolute, double relative)
{
    static_assert(sizeof(Block) == sizeof(ComparedBlock));
    std::vector<Block> found(static_cast<std::size_t>(blocks(expected.size(), 65536)));
    test::launchEmulated(blocks(expected.size(), 65536), 1, 1, [&] {
        kernel(out.data(), expected.data(), found.data(), static_cast<long long>(expected.size()), absolute,
               relative);
    });
    std::vector<ComparedBlock> same(found.size());
    std::memcpy(static_cast<void *>(same.data()), found.data(), found.size() * sizeof(Block));
    return totalsOf(same);
}

ComparisonTotals emulated(DType dtype, const std::vector<std::byte> &out, const std::vector<double> &expected,
                          double absolute, double relative)
{
    if (dtype == DType::F16)
        return emulated<halves::Partial>(halves::compareHalves, out, expected, absolute, relative);
    if (dtype == DType::BF16)
        return emulated<brains::Partial>(brains::compareBrains, out, expected, absolute, relative);
    return emulated<floats::Partial>(floats::compareFloats, out, expected, absolute, relative);
}

bool isNear(double a, double b)
{
    return a == b || std::abs(a - b) <= 1e-12 * std::abs(b);
}

std::shared_ptr<TrustedDevice> fakeDevice(const std::string &mode)
{
    return std::make_shared<TrustedDevice>(
        std::vector<std::string>{binaries + "/klineage-fakeworker", mode, "--backend", "cuda"},
        std::vector<std::string>{binaries + "/klineage-gate", "compile"}, CompileCache({}));
}

} // namespace

class TestDeviceJudge : public QObject
{
    Q_OBJECT
private slots:
    void comparesAsTheCpuDoes_data();
    void comparesAsTheCpuDoes();
    void totalsKnowTheFirstMismatch();
    void holdsIsTheCpusDecision();
    void poisonsAsTheCpuDoes_data();
    void poisonsAsTheCpuDoes();
    void findsOneChangedByte();
    void zonesAreThoseOfImages();
    void compilesForADevice();
    void saysWhereNothingCanBeShared();
};

void TestDeviceJudge::comparesAsTheCpuDoes_data()
{
    QTest::addColumn<int>("dtype");
    QTest::newRow("f16") << static_cast<int>(DType::F16);
    QTest::newRow("bf16") << static_cast<int>(DType::BF16);
    QTest::newRow("f32") << static_cast<int>(DType::F32);
}

void TestDeviceJudge::comparesAsTheCpuDoes()
{
    QFETCH(const int, dtype);
    const auto type = static_cast<DType>(dtype);
    constexpr std::size_t count = 65536 + 4001; // more than a block, and no multiple
    const CounterRandom random(17);
    std::vector<double> expected(count);
    std::vector<std::byte> out(count * kernel::sizeOf(type));
    for (std::size_t i = 0; i < count; ++i) {
        expected[i] = 2 * random.uniform(i) - 1;
        kernel::storeElement(out.data(), type, i, expected[i]);
    }
    const auto set = [&](std::size_t i, double want, double got) {
        expected[i] = want;
        kernel::storeElement(out.data(), type, i, got);
    };
    set(5, -infinity, -infinity);
    set(6, notANumber, notANumber);
    workload::Tolerance tolerance{1e-2, 1e-2, 1e-3, 0, {}, {}};
    tolerance.beforeRounding = 1;
    const auto check = [&](std::size_t mismatches, std::size_t first) {
        const OutputCheck cpu = compareOutput(out, type, 0, expected, tolerance);
        const double rms = rootMeanSquare(expected);
        const ComparisonTotals device = emulated(type, out, expected, tolerance.atol * rms, tolerance.rtol);
        QCOMPARE(device.mismatches, mismatches);
        QCOMPARE(cpu.mismatches, mismatches);
        if (mismatches > 0) {
            QCOMPARE(device.first, first);
            QCOMPARE(cpu.index, first);
        }
        QVERIFY(isNear(relativeError(device), cpu.relativeL2));
        QVERIFY(isNear(errorBeforeRounding(device), cpu.beforeRounding));
        QVERIFY(isNear(device.largestError / cpu.rms, cpu.largestError));
        QCOMPARE(holds(device, type, count, tolerance), cpu.ok());
    };
    check(0, 0);
    for (std::size_t i = 0; i < count;
         i += 3) // 2^-10 off, as far as the type shows it; and what is smaller than its normal numbers
        set(i == 6 ? 7 : i, expected[i == 6 ? 7 : i], expected[i == 6 ? 7 : i] * (1 + 0x1p-10));
    set(9, 0x1p-30, 0);
    set(10, 0, 0);
    check(0, 0);
    set(count - 1, 0.5, 0.6);
    check(1, count - 1);
    set(70, 0.5, infinity);
    check(2, 70);
    set(60, infinity, 0.5);
    set(61, infinity, -infinity);
    set(62, 0.25, notANumber);
    check(5, 60);
}

void TestDeviceJudge::totalsKnowTheFirstMismatch()
{
    const std::vector<ComparedBlock> found{
        {1, 2, 1, 0.5, 0, 99}, {0, 4, 0, 0.25, 3, 7}, {2, 1, 2, 1.5, 1, 9}};
    const ComparisonTotals totals = totalsOf(found);
    QCOMPARE(totals.errorSquares, 3.0);
    QCOMPARE(totals.expectedSquares, 7.0);
    QCOMPARE(totals.unroundedSquares, 3.0);
    QCOMPARE(totals.largestError, 1.5);
    QCOMPARE(totals.mismatches, std::size_t{4});
    QCOMPARE(totals.first, std::size_t{7});
}

void TestDeviceJudge::holdsIsTheCpusDecision()
{
    const workload::Tolerance tolerance{1e-3, 1, 1, 0, {}, {}};
    const std::size_t many = std::size_t{1} << 40; // where rounding averages out
    QVERIFY(holds({0.99e-6, 1, 0, 1, 0, 0}, DType::F16, many, tolerance));
    QVERIFY(!holds({1.01e-6, 1, 0, 1, 0, 0}, DType::F16, many, tolerance));
    QVERIFY(!holds({0, 1, 0, 1, 1, 0}, DType::F16, many, tolerance));
    QVERIFY(holds({0, 0, 0, 0, 0, 0}, DType::F16, many, tolerance));
    QVERIFY(!holds({1e-30, 0, 0, 0, 0, 0}, DType::F16, many, tolerance));
    QVERIFY(!holds({notANumber, 1, 0, 0, 0, 0}, DType::F16, many, tolerance));
}

void TestDeviceJudge::poisonsAsTheCpuDoes_data()
{
    comparesAsTheCpuDoes_data();
}

void TestDeviceJudge::poisonsAsTheCpuDoes()
{
    QFETCH(const int, dtype);
    const auto type = static_cast<DType>(dtype);
    // Beyond the mebibyte where the counter begins anew.
    const std::size_t count = (std::size_t{1} << 20) / kernel::sizeOf(type) + 5000;
    const BufferLayout layout{"c", BufferKind::Output, type, count * kernel::sizeOf(type)};
    const std::uint64_t key = 0xfedcba9876543210u;
    for (const Fill fill : {Fill::Nan, Fill::Garbage, Fill::Word}) {
        RawBytes made(layout.bytes);
        test::launchEmulated(blocks(count, 16384), 1, 1, [&] {
            const auto elements = static_cast<long long>(count);
            const auto signedKey = static_cast<long long>(key);
            const long long garbage = fill == Fill::Garbage ? 1 : 0;
            const long long word = fill == Fill::Word ? poisonWord(key) : 0;
            auto *const halfWords = reinterpret_cast<std::uint16_t *>(made.data());
            if (type == DType::F16)
                halves::poisonHalves(halfWords, elements, signedKey, garbage, word);
            else if (type == DType::BF16)
                brains::poisonBrains(halfWords, elements, signedKey, garbage, word);
            else
                floats::poisonFloats(reinterpret_cast<std::uint32_t *>(made.data()), elements, signedKey,
                                     garbage, word);
        });
        QVERIFY(made == gate::poison(layout, key, fill));
    }
}

void TestDeviceJudge::findsOneChangedByte()
{
    constexpr std::size_t bytes = (std::size_t{1} << 20) + 8 * 1000 + 3;
    std::vector<long long> a(bytes / 8 + 1, 42);
    auto b = a;
    const auto changed = [&] {
        std::vector<long long> counts(2, -1);
        test::launchEmulated(2, 1, 1, [&] {
            same::countChanged(a.data(), b.data(), counts.data(), static_cast<long long>(bytes));
        });
        return counts[0] + counts[1];
    };
    QCOMPARE(changed(), 0);
    for (const std::size_t at :
         {std::size_t{0}, (std::size_t{1} << 20) - 1, std::size_t{1} << 20, bytes - 1}) {
        reinterpret_cast<std::byte *>(b.data())[at] ^= std::byte{1};
        QCOMPARE(changed(), 1);
        b = a;
    }
    reinterpret_cast<std::byte *>(b.data())[bytes] ^= std::byte{1}; // behind the end
    QCOMPARE(changed(), 0);
}

void TestDeviceJudge::zonesAreThoseOfImages()
{
    const BufferLayout layout{"c", BufferKind::Input, DType::F16, 1000};
    std::vector<std::byte> image(layout.total());
    composeImage(layout, 3, std::vector<std::byte>(layout.bytes), image);
    auto zones = composeZones(layout, 3);
    QCOMPARE(zones.size(), layout.total() - layout.bytes);
    QVERIFY(std::equal(zones.begin(), zones.begin() + redZoneBytes, image.begin()));
    QVERIFY(std::equal(zones.begin() + redZoneBytes, zones.end(),
                       image.begin() + static_cast<std::ptrdiff_t>(redZoneBytes + layout.bytes)));
    QVERIFY(!findZoneHit(layout, 3, zones));
    zones[redZoneBytes] ^= std::byte{1};
    const auto hit = findZoneHit(layout, 3, zones);
    QVERIFY(hit && !hit->before);
    QCOMPARE(hit->distance, std::size_t{0});
    QCOMPARE(hit->changed, std::size_t{1});
}

void TestDeviceJudge::compilesForADevice()
{
    const TrustedDevice::Kernel builds[] = {
        {oracle::sameCu, "same.cu", {{"WIDE", 1}}},
        {oracle::poisonCu, "poison.cu", {{"WIDE", 1}, {"TYPE", 0}}},
        {oracle::poisonCu, "poison.cu", {{"WIDE", 1}, {"TYPE", 1}}},
        {oracle::poisonCu, "poison.cu", {{"WIDE", 1}, {"TYPE", 2}}},
        {oracle::compareCu, "compare.cu", {{"WIDE", 0}, {"TYPE", 1}}},
        {oracle::compareCu, "compare.cu", {{"WIDE", 1}, {"TYPE", 0}}},
    };
    for (const TrustedDevice::Kernel &build : builds) {
        QVERIFY(kernel::parseCandidate(build.text, build.name));
        const auto compiled = compileCuda(build.source(), build.name, build.tunables, "sm_90a");
        if (!compiled)
            QSKIP(compiled.error().message.c_str());
        QVERIFY2(compiled->ok, compiled->log.c_str());
    }
}

/// The worker shares nothing, as on a system that has no such thing.
void TestDeviceJudge::saysWhereNothingCanBeShared()
{
    const auto device = fakeDevice("memory");
    QVERIFY(device->session({}));
    CaseInstance instance;
    instance.expected.onDevice = std::make_shared<DeviceContent>(device);
    auto worker = WorkerSession::start({binaries + "/klineage-fakeworker", "memory", "--backend", "cuda"},
                                       kernel::DeviceKind::Cuda, 30, {});
    QVERIFY(worker);
    const auto buffer = (*worker)->allocate(DeviceJudge::leastBytes);
    QVERIFY(buffer);
    DeviceJudge judge(device);
    judge.beginTrial(false, {});
    QVERIFY(!judge.open(**worker, *buffer, DeviceJudge::leastBytes, instance)); // not wanted
    judge.beginTrial(true, {});
    QVERIFY(!judge.open(**worker, *buffer, DeviceJudge::leastBytes - 1, instance)); // not worth it
    QCOMPARE(judge.summary(), std::string());
    QVERIFY(!judge.open(**worker, *buffer, DeviceJudge::leastBytes, instance));
    QVERIFY2(judge.summary().starts_with("cpu: "), judge.summary().c_str());
    QVERIFY((*worker)->alive());
    instance.expected.onDevice.reset();
    judge.beginTrial(true, {});
    QVERIFY(!judge.open(**worker, *buffer, DeviceJudge::leastBytes, instance)); // nothing to compare with
    QCOMPARE(judge.summary(), std::string());
}

QTEST_GUILESS_MAIN(TestDeviceJudge)
#include "tst_devicejudge.moc"
