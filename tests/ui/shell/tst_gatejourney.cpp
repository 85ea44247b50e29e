// SPDX-License-Identifier: GPL-3.0-or-later
// A state is edited and gated on the OpenCL device of the CPU, broken, read about, and mended; with the keys of the real window.
#include "core/pool/gateclient.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/editor/verdictstrip.h"
#include "ui/runs/gatecontroller.h"
#include "ui/shell/centre.h"

#include <QLabel>
#include <QPlainTextEdit>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QTextBlock>
#include <QToolButton>

using namespace klineage;
using namespace klineage::ui;

namespace {

constexpr int gateMs = 4 * patienceMs;

class Desk
{
public:
    explicit Desk(const RealWindow &real)
        : m_real(real)
        , m_gate(real.window->findChild<GateController *>())
    {
        qRegisterMetaType<gate::Trial>("klineage::gate::Trial");
    }

    [[nodiscard]] QPlainTextEdit *text() const { return m_real.find<QPlainTextEdit>("editor"); }

    /// Ctrl+Enter, and the trial that comes of it; nothing when the gate could not run.
    std::optional<gate::Trial> gateIt()
    {
        QSignalSpy finished(m_gate, &GateController::finished);
        QSignalSpy failed(m_gate, &GateController::failed);
        m_real.press(Qt::Key_Return, Qt::ControlModifier);
        if (!QTest::qWaitFor([&] { return !finished.isEmpty() || !failed.isEmpty(); }, gateMs)
            || finished.isEmpty())
            return std::nullopt;
        return finished[0][1].value<gate::Trial>();
    }

    /// All that the strip below the text says.
    [[nodiscard]] QString verdict() const
    {
        const auto *strip = m_real.find<VerdictStrip>("editor");
        QStringList said{strip->accessibleName()};
        for (const QLabel *label : strip->findChildren<QLabel *>()) {
            if (label->isVisible())
                said << label->text();
        }
        return said.join(QLatin1Char('\n'));
    }

    [[nodiscard]] std::size_t branches() const
    {
        return m_real.window->workspace()->lineage(QStringLiteral("silu/pocl"))->branches.size();
    }

private:
    const RealWindow &m_real;
    GateController *m_gate;
};

} // namespace

class TestGateJourney : public UiTest
{
    Q_OBJECT

private slots:
    void editedBrokenAndMended()
    {
        const auto devices =
            gate::queryDevices(std::filesystem::path(klineage::test::programPath()) / "klineage-gate");
        if (!devices || devices->empty() || !devices->front().available)
            QSKIP("There is no OpenCL device.");
        const RealWindow real(QStringLiteral("silu/pocl/K00"));
        QVERIFY(real.ready);
        Desk desk(real);
        const std::size_t before = desk.branches();

        // Enter opens the state; the line of the result gets the same value in other words.
        real.focus("lineage");
        real.press(Qt::Key_Return);
        QCOMPARE(real.window->centre()->page(), QStringLiteral("editor"));
        desk.text()->setFocus();
        real.press(Qt::Key_End, Qt::ControlModifier);
        real.press(Qt::Key_Up);
        real.press(Qt::Key_Up);
        real.press(Qt::Key_End);
        real.press(Qt::Key_Left);
        real.type(QStringLiteral(" * 1.0f"));
        QVERIFY(desk.text()->toPlainText().contains(QLatin1String("(1.0f + exp(-v)) * 1.0f;")));
        auto trial = desk.gateIt();
        QVERIFY(trial);
        QCOMPARE(gate::toString(trial->verdict.status), "correct");
        QCOMPARE(desk.branches(), before + 1);
        QVERIFY2(desk.verdict().contains(QLatin1String("correct")), qPrintable(desk.verdict()));
        QVERIFY(real.settle());

        // Broken: half of it. The strip says which element, what it is and what it should be; the lineage keeps the attempt.
        desk.text()->setFocus();
        for (int i = 0; i < 4; ++i)
            real.press(Qt::Key_Backspace);
        real.type(QStringLiteral("0.5f"));
        QVERIFY(desk.text()->toPlainText().contains(QLatin1String("exp(-v)) * 0.5f;")));
        // The verdict that still stands there is not of this text.
        const auto *stale = real.find<QWidget>("editor", QStringLiteral("verdictStale"));
        QVERIFY(stale->isVisible());
        trial = desk.gateIt();
        QVERIFY(trial);
        QCOMPARE(gate::toString(trial->verdict.status), "wrong");
        QCOMPARE(trial->verdict.stage, gate::Stage::Correctness);
        const QString why = desk.verdict();
        QVERIFY(!stale->isVisible());
        QVERIFY2(why.contains(QLatin1String("wrong")), qPrintable(why));
        static const QRegularExpression element(QStringLiteral("y\\[\\d+, \\d+\\]"));
        QVERIFY2(why.contains(element), qPrintable(why));
        QVERIFY2(why.contains(QString::fromStdString(trial->verdict.message)), qPrintable(why));
        QCOMPARE(desk.branches(), before + 2);
        // One line below the code; the rest unfolds with a key, scrolls, and is said once.
        auto *strip = real.find<VerdictStrip>("editor");
        auto *details = strip->findChild<QPlainTextEdit *>();
        QVERIFY2(strip->height() < 3 * QFontMetrics(strip->font()).lineSpacing(),
                 qPrintable(QString::number(strip->height())));
        QVERIFY(!details->isVisible());
        auto *more = strip->findChild<QToolButton *>(QStringLiteral("verdictDetails"));
        more->setFocus();
        real.press(Qt::Key_Space);
        QTRY_VERIFY(details->isVisible());
        QVERIFY(details->toPlainText().contains(QString::fromStdString(trial->verdict.hint)));
        QVERIFY(details->height() < desk.text()->height());
        QStringList shown{details->toPlainText()};
        for (const QLabel *label : strip->findChildren<QLabel *>())
            shown << label->text();
        QCOMPARE(shown.join(QLatin1Char('\n')).count(element), 1);
        real.press(Qt::Key_Space);
        QTRY_VERIFY(!details->isVisible());

        // A kernel that does not compile names the line.
        desk.text()->setFocus();
        real.press(Qt::Key_Z, Qt::ControlModifier);
        real.press(Qt::Key_End);
        real.press(Qt::Key_Backspace);
        trial = desk.gateIt();
        QVERIFY(trial);
        QCOMPARE(gate::toString(trial->verdict.status), "compile_error");
        QVERIFY2(desk.verdict().contains(QRegularExpression(QStringLiteral("line \\d+|:\\d+"))),
                 qPrintable(desk.verdict()));

        // Mended.
        desk.text()->setFocus();
        real.press(Qt::Key_End);
        while (!desk.text()->textCursor().block().text().endsWith(QLatin1String("exp(-v))")))
            real.press(Qt::Key_Backspace);
        real.type(QStringLiteral(";"));
        trial = desk.gateIt();
        QVERIFY(trial);
        QVERIFY2(trial->verdict.status == gate::VerdictStatus::Correct, trial->verdict.message.c_str());
        QVERIFY(desk.verdict().contains(QLatin1String("correct")));
    }
};

KLINEAGE_UI_TEST(TestGateJourney)
#include "tst_gatejourney.moc"
