// SPDX-License-Identifier: GPL-3.0-or-later
//
// libklineage-cub.so as the worker loads it, without a device: what it exports, and that it says what it cannot do.
#include "core/device/cuda/cub/cublibrary.h"
#include "core/device/references/cublibrary.h"
#include "core/gate/references/installed.h"
#include "tests/paths.h"

#include <QtTest>

#include <algorithm>
#include <dlfcn.h>

using namespace klineage::gate;

class TestCubLibrary : public QObject
{
    Q_OBJECT
private slots:
    void besideTheProgram();
    void initLibrary();
    void operators_data();
    void operators();
    void withoutADevice();

private:
    template <typename Function>
    Function *find(const char *name) const
    {
        return reinterpret_cast<Function *>(::dlsym(m_library, name));
    }
    void *m_library = nullptr;
};

void TestCubLibrary::besideTheProgram()
{
    const auto path = cubLibraryPath();
    QCOMPARE(QString::fromStdString(path.parent_path().string()), QCoreApplication::applicationDirPath());
    QCOMPARE(path.filename().string(), std::string("libklineage-cub.so"));
    // There is none beside a test, and doctor says so.
    const auto installed = installedReferences();
    const auto cub =
        std::find_if(installed.begin(), installed.end(),
                     [](const InstalledReference &reference) { return reference.provider == "cub"; });
    QVERIFY(cub != installed.end());
    QCOMPARE(cub->version, std::string());
    QVERIFY2(cub->problem.find("nvcc") != std::string::npos, cub->problem.c_str());
}

void TestCubLibrary::initLibrary()
{
    const QString path = QString::fromStdString(klineage::test::programPath("/libklineage-cub.so"));
    if (!QFile::exists(path))
        QSKIP("This build has no nvcc.");
    m_library = ::dlopen(path.toUtf8().constData(), RTLD_NOW | RTLD_LOCAL);
    QVERIFY2(m_library, m_library ? "" : ::dlerror());
    QCOMPARE(find<KlineageCubInterface>("klineage_cub_interface")(), KLINEAGE_CUB_INTERFACE);
    QVERIFY(find<KlineageCubVersion>("klineage_cub_version")() >= 200000);
    QVERIFY(QString(find<KlineageCubTargets>("klineage_cub_targets")()).contains("PTX"));
}

void TestCubLibrary::operators_data()
{
    QTest::addColumn<QString>("op");
    QTest::addColumn<QStringList>("ways");
    QTest::newRow("sum") << "sum_rows" << QStringList{"DeviceSegmentedReduce::Sum"};
    QTest::newRow("scan") << "cumsum_rows" << QStringList{"DeviceScan::InclusiveSumByKey"};
    QTest::newRow("sort") << "sort_rows"
                          << QStringList{"DeviceSegmentedRadixSort::SortKeys",
                                         "DeviceSegmentedSort::SortKeys"};
    QTest::newRow("top-k") << "topk_rows"
                           << QStringList{"DeviceSegmentedRadixSort::SortPairsDescending",
                                          "DeviceSegmentedSort::SortPairsDescending"};
    QTest::newRow("none") << "gemm_nt" << QStringList();
}

void TestCubLibrary::operators()
{
    if (!m_library)
        QSKIP("This build has no nvcc.");
    QFETCH(const QString, op);
    QStringList ways;
    const auto way = find<KlineageCubWay>("klineage_cub_way");
    while (const char *name = way(op.toUtf8().constData(), static_cast<int>(ways.size())))
        ways.append(name);
    QTEST(ways, "ways");
}

void TestCubLibrary::withoutADevice()
{
    if (!m_library)
        QSKIP("This build has no nvcc.");
    KlineageCubCall call{};
    call.rows = 3;
    call.columns = 5;
    std::size_t bytes = 0;
    const auto workspace = find<KlineageCubWorkspace>("klineage_cub_workspace");
    const int unknown = workspace("gemm_nt", 0, &call, &bytes);
    QVERIFY(unknown != 0);
    QVERIFY(QString(find<KlineageCubError>("klineage_cub_error")(unknown)).contains("not supported"));
    QCOMPARE(find<KlineageCubPrepare>("klineage_cub_prepare")("gemm_nt", 0, &call), unknown);
    QCOMPARE(find<KlineageCubRun>("klineage_cub_run")("sort_rows", 2, &call), unknown);
}

QTEST_GUILESS_MAIN(TestCubLibrary)
#include "tst_cublibrary.moc"
