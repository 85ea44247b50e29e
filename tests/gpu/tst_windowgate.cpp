// SPDX-License-Identifier: GPL-3.0-or-later
//
// The workbench's own sentence, on a GPU of this machine: the window opens a state, somebody edits it, presses Ctrl+Enter, and the
// verdict is there. Needs a CUDA device. With KLINEAGE_PICTURES=FOLDER it leaves pictures of what was seen there.
#include "core/pool/gateclient.h"
#include "tests/paths.h"
#include "tests/patience.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/editor/verdictstrip.h"
#include "ui/runs/gatecontroller.h"
#include "ui/shell/centre.h"
#include "ui/style/theme.h"

#include <QElapsedTimer>
#include <QPixmap>
#include <QPlainTextEdit>
#include <QSignalSpy>

#include <algorithm>

using namespace klineage;
using namespace klineage::ui;

namespace {

constexpr int verdictMs = 240'000; // references in Python start slowly

/// The CUDA device of this machine; empty: there is none, and why.
QString cudaDevice(QString *why)
{
    const auto devices = gate::queryDevices(klineage::test::programPath("/klineage-gate"));
    if (!devices)
        *why = QString::fromStdString(devices.error().message);
    for (const gate::DeviceInfo &device : devices.value_or(std::vector<gate::DeviceInfo>{})) {
        if (device.kind == kernel::DeviceKind::Cuda && device.available)
            return QString::fromStdString(device.name);
        if (device.kind == kernel::DeviceKind::Cuda)
            *why = QString::fromStdString(device.detail);
    }
    return {};
}

void picture(const RealWindow &real, const char *name)
{
    const QString folder = qEnvironmentVariable("KLINEAGE_PICTURES");
    if (!folder.isEmpty())
        QVERIFY(real.settle() && real.window->grab().save(folder + u'/' + QLatin1String(name)));
}

} // namespace

class TestWindowGate : public UiTest
{
    Q_OBJECT

private:
    /// Ctrl+Enter, until the verdict is there.
    static void gated(const RealWindow &real, gate::Trial *trial)
    {
        auto *controller = real.window->findChild<GateController *>();
        QVERIFY(controller);
        QSignalSpy finished(controller, &GateController::finished);
        QSignalSpy failed(controller, &GateController::failed);
        QElapsedTimer time;
        time.start();
        real.press(Qt::Key_Return, Qt::ControlModifier);
        QVERIFY(controller->isRunning());
        QVERIFY(QTest::qWaitFor([&] { return !finished.isEmpty() || !failed.isEmpty(); }, verdictMs));
        QVERIFY2(failed.isEmpty(), qPrintable(failed.isEmpty() ? QString() : failed[0][1].toString()));
        *trial = finished[0][1].value<gate::Trial>();
        const gate::StageSeconds &stages = trial->stages;
        qInfo("%s after %.2f s (start %.2f, compile %.2f, oracle %.2f, check %.2f, profile %.2f): %s",
              gate::toString(trial->verdict.status), 1e-3 * static_cast<double>(time.elapsed()), stages.start,
              stages.compile, stages.oracle, stages.check, stages.profile, trial->verdict.message.c_str());
    }

private slots:
    void initTestCase()
    {
        qputenv("PATH", QByteArray::fromStdString(klineage::test::programPath()) + ':' + qgetenv("PATH"));
        qRegisterMetaType<gate::Trial>("klineage::gate::Trial");
        QString why = QStringLiteral("This gate has no CUDA surface.");
        m_device = cudaDevice(&why);
        if (m_device.isEmpty())
            QSKIP(qPrintable(why));
    }

    /// One division a row instead of one an element: first half of it, which is wrong, then all of it.
    void anEditIsJudgedOnTheLocalDevice()
    {
        const RealWindow real(QStringLiteral("softmax/sm90/K02"));
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));
        auto *text = real.find<QPlainTextEdit>("editor");
        auto *strip = real.window->findChild<VerdictStrip *>();
        QVERIFY(text && strip);
        text->setFocus();

        // `y[c] = expf(x[c] - top) / sum;` is the last line but one.
        real.press(Qt::Key_End, Qt::ControlModifier);
        for (int i = 0; i < 2; ++i)
            real.press(Qt::Key_Up);
        real.press(Qt::Key_End);
        for (int i = 0; i < 5; ++i)
            real.press(Qt::Key_Left);
        real.press(Qt::Key_Backspace);
        real.type(QStringLiteral("*"));
        QVERIFY2(text->toPlainText().contains(QLatin1String("y[c] = expf(x[c] - top) * sum;")),
                 qPrintable(text->toPlainText().right(200)));
        gate::Trial trial;
        gated(real, &trial);
        if (QTest::currentTestFailed())
            return;
        QCOMPARE(trial.verdict.status, gate::VerdictStatus::Wrong);
        QVERIFY(strip->isVisible() && strip->accessibleName().contains(QLatin1String("wrong")));
        picture(real, "windowgate-wrong.png");

        // Two lines above: `sum = warpSum(sum);`.
        for (int i = 0; i < 2; ++i)
            real.press(Qt::Key_Up);
        real.press(Qt::Key_End);
        for (int i = 0; i < 13; ++i)
            real.press(Qt::Key_Left);
        real.type(QStringLiteral("1 / "));
        QVERIFY2(text->toPlainText().contains(QLatin1String("    sum = 1 / warpSum(sum);\n")),
                 qPrintable(text->toPlainText().right(200)));
        gated(real, &trial);
        if (QTest::currentTestFailed())
            return;
        QCOMPARE(trial.verdict.status, gate::VerdictStatus::Correct);
        QCOMPARE(QString::fromStdString(trial.environment.device), m_device);
        const gate::Comparison *parent = trial.comparison("parent");
        QVERIFY(parent);
        QCOMPARE(parent->change, gate::Change::Gain);
        QVERIFY(strip->isVisible() && strip->accessibleName().contains(QLatin1String("correct")));
        picture(real, "windowgate-gain-light.png");
        Theme::apply(*qApp, ThemeChoice::Dark);
        picture(real, "windowgate-gain-dark.png");
        Theme::apply(*qApp, ThemeChoice::Light);
    }

private:
    QString m_device;
};

KLINEAGE_UI_TEST(TestWindowGate)
#include "tst_windowgate.moc"
