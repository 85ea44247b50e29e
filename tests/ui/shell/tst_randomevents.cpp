// SPDX-License-Identifier: GPL-3.0-or-later
// Keys, clicks, wheel and sizes by chance on the window with the shipped workspace: nothing crashes, nothing warns, the window still works.
// KLINEAGE_RANDOM_EVENTS says how many (10000 by hand), KLINEAGE_RANDOM_SEED which; the seed is printed.
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFileDialog>
#include <QMenu>
#include <QTimer>
#include <QWheelEvent>

#include <random>

using namespace klineage;
using namespace klineage::ui;

namespace {

constexpr int eventsAbsent = 300;

int numberIn(const char *name, int otherwise)
{
    bool isNumber = false;
    const int value = qEnvironmentVariableIntValue(name, &isNumber);
    return isNumber ? value : otherwise;
}

/// What would end the test, start processes that outlive it, or reach out of its folder.
bool isLeftOut(const QAction &action)
{
    const QString id = action.objectName();
    for (const char *part : {"quit", "gate", "record", "workspace", "terminal"}) {
        if (id.contains(QLatin1String(part), Qt::CaseInsensitive))
            return true;
    }
    return false;
}

/// One event after the other, from whichever event loop runs: dialogs have loops of their own.
class Monkey : public QObject
{
public:
    Monkey(MainWindow *window, unsigned seed, int count)
        : m_window(window)
        , m_random(seed)
        , m_left(count)
    {
        for (const ActionRegistry::Entry &entry : std::as_const(*window->actions()).entries()) {
            if (!entry.action->shortcut().isEmpty() && !isLeftOut(*entry.action))
                m_keys.push_back(entry.action->shortcut()[0]);
        }
        for (const Qt::Key key :
             {Qt::Key_Up, Qt::Key_Down, Qt::Key_Left, Qt::Key_Right, Qt::Key_Tab, Qt::Key_Home, Qt::Key_End,
              Qt::Key_PageDown, Qt::Key_PageUp, Qt::Key_Space, Qt::Key_Return, Qt::Key_Escape, Qt::Key_J,
              Qt::Key_K, Qt::Key_Backspace, Qt::Key_Delete})
            m_keys.push_back(QKeyCombination(key));
        QTimer::singleShot(0, this, &Monkey::act);
    }

    [[nodiscard]] bool isDone() const { return m_left <= 0 && top() == m_window; }
    [[nodiscard]] qint64 longestMs() const { return m_longest; }

private:
    int below(int end) { return static_cast<int>(m_random() % static_cast<unsigned>(std::max(end, 1))); }

    QWidget *top() const
    {
        if (QWidget *popup = QApplication::activePopupWidget())
            return popup;
        if (QWidget *modal = QApplication::activeModalWidget())
            return modal;
        return m_window;
    }

    void act()
    {
        QTimer::singleShot(0, this,
                           &Monkey::act); // anew: a timer does not come again while it is being handled
        const QPointer<QWidget> target = top();
        const bool isWindow = target == m_window;
        if (m_left <= 0) { // what is open would wait for ever
            if (!isWindow)
                target->close();
            return;
        }
        --m_left;
        QElapsedTimer timer;
        timer.start();
        m_inDialog = isWindow ? 0 : m_inDialog + 1;
        if (!isWindow && (m_inDialog > 25 || qobject_cast<QFileDialog *>(target.data()))) {
            QTest::keyClick(target, Qt::Key_Escape);
            if (m_inDialog > 60 && target)
                target->close();
        } else {
            switch (below(10)) {
            case 0:
            case 1:
                click(target);
                break;
            case 2:
                scroll(target);
                break;
            case 3:
                if (isWindow && below(8) == 0)
                    m_window->resize(900 + below(900), 600 + below(500));
                else
                    type();
                break;
            default:
                press(target);
            }
        }
        if (m_inDialog == 0) // a dialog's own loop is no hang
            m_longest = std::max(m_longest, timer.elapsed());
    }

    void press(QWidget *target)
    {
        const QKeyCombination key = m_keys[static_cast<std::size_t>(below(static_cast<int>(m_keys.size())))];
        QWidget *focus = QApplication::focusWidget();
        QTest::keyClick(focus && target->isAncestorOf(focus) ? focus : target, key.key(),
                        key.keyboardModifiers());
    }

    void type()
    {
        if (QWidget *focus = QApplication::focusWidget())
            QTest::keyClick(focus, static_cast<char>('a' + below(26)));
    }

    void click(QWidget *target)
    {
        const QPoint at(below(target->width()), below(target->height()));
        QWidget *child = target->childAt(at);
        QWidget *hit = child ? child : target;
        const QPoint place = hit->mapFrom(target, at);
        if (below(5) == 0)
            QTest::mouseDClick(hit, Qt::LeftButton, {}, place);
        else
            QTest::mouseClick(hit, Qt::LeftButton, below(6) == 0 ? Qt::ControlModifier : Qt::NoModifier,
                              place);
    }

    void scroll(QWidget *target)
    {
        const QPoint at(below(target->width()), below(target->height()));
        QWidget *child = target->childAt(at);
        QWidget *hit = child ? child : target;
        QWheelEvent wheel(hit->mapFrom(target, at), target->mapToGlobal(at), {},
                          {0, below(2) == 0 ? 120 : -120}, Qt::NoButton,
                          below(4) == 0 ? Qt::ControlModifier : Qt::NoModifier, Qt::NoScrollPhase, false);
        QApplication::sendEvent(hit, &wheel);
    }

    MainWindow *m_window;
    std::mt19937 m_random;
    int m_left;
    int m_inDialog = 0;
    qint64 m_longest = 0;
    std::vector<QKeyCombination> m_keys;
};

} // namespace

class TestRandomEvents : public UiTest
{
    Q_OBJECT

private slots:
    void theWindowOutlivesThem()
    {
        const int count = numberIn("KLINEAGE_RANDOM_EVENTS", eventsAbsent);
        const int seed = numberIn("KLINEAGE_RANDOM_SEED", 1);
        const RealWindow real;
        QVERIFY(real.ready);
        QVERIFY(QDir::setCurrent(real.folder.path()));
        Monkey monkey(real.window.get(), static_cast<unsigned>(seed), count);
        QVERIFY(QTest::qWaitFor([&] { return monkey.isDone(); }, 600'000));
        qInfo("seed %d, %d events; the longest took %lld ms", seed, count,
              static_cast<long long>(monkey.longestMs()));
        // It still does what it is told.
        QVERIFY(real.settle());
        real.window->resize(1600, 1000);
        real.window->setWanted(QStringLiteral("softmax/sm90/K05"), {});
        QVERIFY(real.settle());
    }
};

KLINEAGE_UI_TEST(TestRandomEvents)
#include "tst_randomevents.moc"
