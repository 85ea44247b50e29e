// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/deviceturn.h"
#include "tests/patience.h"

#include <QTemporaryDir>
#include <QTest>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace klineage::gate;
using namespace std::chrono_literals;
using Outcome = DeviceTurn::Outcome;

namespace {
std::filesystem::path pathOf(const QTemporaryDir &folder)
{
    return folder.path().toStdString();
}
} // namespace

class TestDeviceTurn : public QObject
{
    Q_OBJECT
private slots:
    void oneAtATime();
    void anotherDeviceIsFree();
    void isFair();
    void isCancelled();
    void patienceEnds();
    void withoutALock();
    void meetingPlaceIsNobodysToMove();
    void eachGpuHasItsOwn_data();
    void eachGpuHasItsOwn();
};

void TestDeviceTurn::eachGpuHasItsOwn_data()
{
    QTest::addColumn<QByteArray>("visible");
    QTest::addColumn<QByteArray>("given");
    QTest::addColumn<QString>("name");
    QTest::newRow("all") << QByteArray() << QByteArray() << "cuda";
    QTest::newRow("the first") << QByteArray("0,1") << QByteArray() << "cuda";
    QTest::newRow("the third") << QByteArray("2") << QByteArray() << "cuda-2";
    QTest::newRow("by name") << QByteArray("GPU-8f/../x") << QByteArray() << "cuda-GPU-8fx";
    QTest::newRow("confined by Slurm") << QByteArray("0") << QByteArray("3") << "cuda-3";
    QTest::newRow("not confined by Slurm") << QByteArray("3") << QByteArray("3") << "cuda-3";
    QTest::newRow("the second of Slurm's two") << QByteArray("1") << QByteArray("4,5") << "cuda-5";
}

void TestDeviceTurn::eachGpuHasItsOwn()
{
    QFETCH(QByteArray, visible);
    QFETCH(QByteArray, given);
    QFETCH(QString, name);
    const auto put = [](const char *variable, const QByteArray &value) {
        value.isEmpty() ? qunsetenv(variable) : qputenv(variable, value);
    };
    put("CUDA_VISIBLE_DEVICES", visible);
    put("SLURM_STEP_GPUS", given);
    QCOMPARE(QString::fromStdString(DeviceTurn::nameOf(klineage::kernel::DeviceKind::Cuda)), name);
    QCOMPARE(DeviceTurn::nameOf(klineage::kernel::DeviceKind::OpenCl), std::string("opencl"));
    put("CUDA_VISIBLE_DEVICES", {});
    put("SLURM_STEP_GPUS", {});
}

void TestDeviceTurn::meetingPlaceIsNobodysToMove()
{
    const QTemporaryDir folder;
    const std::filesystem::path before = DeviceTurn::meetingPlace();
    QVERIFY(std::filesystem::is_directory(before));
    const QByteArray kept = qgetenv("TMPDIR");
    qputenv("TMPDIR", folder.path().toUtf8());
    QCOMPARE(DeviceTurn::meetingPlace(), before);
    kept.isEmpty() ? qunsetenv("TMPDIR") : qputenv("TMPDIR", kept);
}

void TestDeviceTurn::oneAtATime()
{
    const QTemporaryDir folder;
    std::atomic<int> holders = 0;
    std::atomic<bool> together = false;
    std::atomic<int> had = 0;
    std::vector<std::jthread> gates;
    for (int i = 0; i < 4; ++i) {
        gates.emplace_back([&] {
            for (int trial = 0; trial < 5; ++trial) {
                DeviceTurn turn;
                if (turn.take(pathOf(folder), "opencl", 60, {}) == Outcome::Had)
                    ++had;
                if (++holders != 1)
                    together = true;
                std::this_thread::sleep_for(1ms);
                --holders;
            }
        });
    }
    gates.clear();
    QCOMPARE(had.load(), 20);
    QVERIFY(!together);
}

void TestDeviceTurn::anotherDeviceIsFree()
{
    const QTemporaryDir folder;
    DeviceTurn cpu;
    DeviceTurn gpu;
    QVERIFY(cpu.take(pathOf(folder), "opencl", 0, {}) == Outcome::Had);
    QVERIFY(gpu.take(pathOf(folder), "cuda", 0, {}) == Outcome::Had);
}

void TestDeviceTurn::isFair()
{
    // One that lets go and asks again at once does not keep the other out.
    const QTemporaryDir folder;
    std::atomic<bool> stop = false;
    std::jthread greedy([&] {
        while (!stop) {
            DeviceTurn turn;
            (void)turn.take(pathOf(folder), "opencl", 60, {});
            std::this_thread::sleep_for(5ms);
        }
    });
    DeviceTurn turn;
    const Outcome outcome = turn.take(pathOf(folder), "opencl", patienceSeconds, {});
    turn.release();
    stop = true;
    QVERIFY(outcome == Outcome::Had);
}

void TestDeviceTurn::isCancelled()
{
    const QTemporaryDir folder;
    DeviceTurn first;
    QVERIFY(first.take(pathOf(folder), "opencl", 0, {}) == Outcome::Had);
    std::stop_source stop;
    int told = 0;
    DeviceTurn second;
    const auto waiting = [&] {
        ++told;
        stop.request_stop();
    };
    QVERIFY(second.take(pathOf(folder), "opencl", 60, stop.get_token(), waiting) == Outcome::Cancelled);
    QCOMPARE(told, 1);
}

void TestDeviceTurn::patienceEnds()
{
    const QTemporaryDir folder;
    DeviceTurn first;
    QVERIFY(first.take(pathOf(folder), "opencl", 0, {}) == Outcome::Had);
    DeviceTurn second;
    QVERIFY(second.take(pathOf(folder), "opencl", 0.02, {}) == Outcome::NotHad);
    first.release();
    QVERIFY(second.take(pathOf(folder), "opencl", 0, {}) == Outcome::Had);
}

void TestDeviceTurn::withoutALock()
{
    DeviceTurn turn;
    QVERIFY(turn.take("/proc/nowhere/at/all", "opencl", 60, {}) == Outcome::NotHad);
    // What somebody else put there in its place is neither followed nor waited for.
    const QTemporaryDir folder;
    std::filesystem::create_symlink("/dev/null", pathOf(folder) / "klineage-opencl.turn");
    QVERIFY(turn.take(pathOf(folder), "opencl", 60, {}) == Outcome::NotHad);
}

QTEST_GUILESS_MAIN(TestDeviceTurn)
#include "tst_deviceturn.moc"
