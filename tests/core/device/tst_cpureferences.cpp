// SPDX-License-Identifier: GPL-3.0-or-later
//
// Routines of CPU libraries against the oracles, on the shipped workloads that name them, with other shapes than the timed one: what is
// written in workload.toml as a call must compute what its oracle says.
#include "core/device/references/cpureference.h"
#include "core/gate/check/caseinstance.h"
#include "core/gate/check/comparison.h"
#include "tests/paths.h"

#include <QtTest>

#include <algorithm>

using namespace klineage;
using namespace klineage::gate;

namespace {

workload::Workload shippedWorkload(const QString &name)
{
    auto workload = workload::readWorkload(std::filesystem::path(klineage::test::sourcePath()) / "workloads"
                                           / name.toStdString());
    if (!workload)
        qFatal("%s", workload.error().message.c_str());
    return *workload;
}

ReferenceCall callOf(const workload::Workload &workload, const workload::Case &c)
{
    const workload::Reference &reference = workload.references.front();
    ReferenceCall call{reference.provider, reference.op, {}, {}};
    for (const auto &[role, name] : reference.args) {
        if (workload.findTensor(name))
            call.buffers[role] = name;
        else
            call.sizes[role] = c.axes.at(name);
    }
    return call;
}

/// The tensors' bytes by role; outputs are filled with 0xff, which is NaN.
HostBuffers bind(const ReferenceCall &call, std::vector<HostTensor> &tensors)
{
    HostBuffers buffers;
    for (const auto &[role, name] : call.buffers) {
        HostTensor &tensor = *std::find_if(tensors.begin(), tensors.end(),
                                           [&](const HostTensor &t) { return t.name == name; });
        if (tensor.role == workload::Role::Output)
            tensor.bytes.assign(tensor.elements() * sizeof(float), std::byte{0xff});
        buffers[role] = tensor.bytes.data();
    }
    return buffers;
}

} // namespace

class TestCpuReferences : public QObject
{
    Q_OBJECT
private slots:
    void agreesWithTheOracle_data();
    void agreesWithTheOracle();
    void saysWhatTheCallLacks_data();
    void saysWhatTheCallLacks();
};

void TestCpuReferences::agreesWithTheOracle_data()
{
    QTest::addColumn<QString>("workload");
    QTest::addColumn<QString>("caseName");
    const std::map<const char *, std::vector<const char *>> cases{
        {"sgemm", {"odd"}},
        {"sgemm-nt", {"odd"}},
        {"softmax", {"odd", "long-rows"}},
        {"layernorm", {"odd", "one-row", "long-rows", "offset", "small"}},
        {"conv2d", {"odd", "smallest", "one-row", "one-column", "integers"}},
    };
    for (const auto &[workload, names] : cases)
        for (const char *name : names)
            QTest::addRow("%s %s", workload, name) << QString(workload) << QString(name);
}

void TestCpuReferences::agreesWithTheOracle()
{
    QFETCH(const QString, workload);
    QFETCH(const QString, caseName);
    const workload::Workload w = shippedWorkload(workload);
    const workload::Case &c = *w.findCase(caseName.toStdString());
    const ReferenceCall call = callOf(w, c);
    const auto reference = makeCpuReference(call, 1);
    if (!reference && reference.error().message.starts_with("Cannot load "))
        QSKIP(reference.error().message.c_str());
    QVERIFY2(reference, reference ? "" : reference.error().message.c_str());
    for (std::uint64_t seed = 1; seed <= 2; ++seed) { // other inputs, in other buffers, for the same routine
        const auto instance = makeInstance(w, c, seed);
        QVERIFY(instance);
        std::vector<HostTensor> tensors = (*instance)->tensors;
        const Status ran = (*reference)->run(bind(call, tensors));
        QVERIFY2(ran, ran ? "" : ran.error().message.c_str());
        const HostTensor &out = tensors.back();
        const OutputCheck check = compareOutput(out.bytes, out.dtype, out.rowLength(),
                                                (*instance)->expected.at(out.name), (*instance)->tolerance);
        QVERIFY2(check.ok(), qPrintable(QString::number(check.largestError)));
    }
    QVERIFY((*reference)->version().starts_with(call.provider));
}

void TestCpuReferences::saysWhatTheCallLacks_data()
{
    QTest::addColumn<QString>("provider");
    QTest::addColumn<QString>("op");
    QTest::addColumn<QString>("says");
    QTest::newRow("provider") << "mkl"
                              << "sgemm_nn"
                              << "Cannot use the reference \"mkl\" on a CPU";
    QTest::newRow("operator") << "onednn"
                              << "fft"
                              << "expected softmax, layernorm or conv2d_nhwc.";
    QTest::newRow("role") << "onednn"
                          << "conv2d_nhwc"
                          << "it needs a tensor for \"data\".";
    QTest::newRow("roles") << "onednn"
                           << "softmax"
                           << "it takes 2 tensors, the workload names 4.";
    QTest::newRow("size") << "onednn"
                          << "layernorm"
                          << "it needs the size \"cols\"";
}

void TestCpuReferences::saysWhatTheCallLacks()
{
    QFETCH(const QString, provider);
    QFETCH(const QString, op);
    QFETCH(const QString, says);
    ReferenceCall call{provider.toStdString(), op.toStdString(), {}, {{"rows", 4}}};
    for (const char *role : {"in", "gamma", "beta", "out"})
        call.buffers[role] = role;
    const auto reference = makeCpuReference(call, 1);
    QVERIFY(!reference);
    QVERIFY2(QString::fromStdString(reference.error().message).contains(says),
             reference.error().message.c_str());
}

QTEST_GUILESS_MAIN(TestCpuReferences)
#include "tst_cpureferences.moc"
