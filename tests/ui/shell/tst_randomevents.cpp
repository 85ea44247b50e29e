// SPDX-License-Identifier: GPL-3.0-or-later
// Keys, clicks, wheel and sizes by chance on the window with the shipped workspace: nothing crashes, nothing warns, the window still works.
// KLINEAGE_RANDOM_EVENTS says how many (10000 by hand), KLINEAGE_RANDOM_SEED which; the seed is printed. How long the window was busy with each
// of them is printed too, the longest by name; KLINEAGE_RANDOM_TIMED=1, for a quiet machine, fails where one took more than 100 ms.
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFileDialog>
#include <QMenu>
#include <QTimer>
#include <QWheelEvent>

#include <algorithm>
#include <ctime>
#include <random>

using namespace klineage;
using namespace klineage::ui;

namespace {

constexpr int eventsAbsent = 300;
constexpr double hangMs = 100;
constexpr std::size_t namedEvents = 10;

/// An event, and for how long nothing else was done because of it: until the next one came, with all that was put off and painted.
struct Busy {
    double ms = 0;
    double processorMs = 0; ///< that the window's thread had of it: on a busy machine the rest is others'
    QString event;
};

double processorMs()
{
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double percentile(const std::vector<Busy> &sorted, double fraction)
{
    return sorted.empty()
               ? 0
               : sorted[static_cast<std::size_t>(fraction * static_cast<double>(sorted.size() - 1))].ms;
}

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
    /// The shortest first.
    [[nodiscard]] std::vector<Busy> busy() const
    {
        std::vector<Busy> sorted = m_busy;
        std::sort(sorted.begin(), sorted.end(), [](const Busy &a, const Busy &b) { return a.ms < b.ms; });
        return sorted;
    }

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
        endEvent(isWindow);
        if (m_left <= 0) { // what is open would wait for ever
            if (!isWindow)
                target->close();
            return;
        }
        --m_left;
        m_timer.start();
        m_processorMs = processorMs();
        m_event = {};
        m_wasWindow = isWindow;
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
                    resize();
                else
                    type();
                break;
            default:
                press(target);
            }
        }
    }

    /// A dialog's own loop is no hang.
    void endEvent(bool isWindow)
    {
        if (!m_event.isEmpty() && isWindow && m_wasWindow)
            m_busy.push_back(
                {static_cast<double>(m_timer.nsecsElapsed()) / 1e6, processorMs() - m_processorMs, m_event});
        m_event.clear();
    }

    void name(const QString &what, const QWidget *on)
    {
        const QWidget *panel = on;
        while (panel
               && !std::as_const(*m_window->actions()).find(QStringLiteral("panel.") + panel->objectName()))
            panel = panel->parentWidget();
        m_event = QStringLiteral("%1 on %2 of %3")
                      .arg(what, on ? QLatin1String(on->metaObject()->className()) : QLatin1String("nothing"),
                           panel ? panel->objectName() : QStringLiteral("the window"));
    }

    void resize()
    {
        const QSize size(900 + below(900), 600 + below(500));
        name(QStringLiteral("size %1 x %2").arg(size.width()).arg(size.height()), m_window);
        m_window->resize(size);
    }

    void press(QWidget *target)
    {
        const QKeyCombination key = m_keys[static_cast<std::size_t>(below(static_cast<int>(m_keys.size())))];
        QWidget *focus = QApplication::focusWidget();
        QWidget *to = focus && target->isAncestorOf(focus) ? focus : target;
        name(QKeySequence(key).toString(QKeySequence::PortableText), to);
        QTest::keyClick(to, key.key(), key.keyboardModifiers());
    }

    void type()
    {
        QWidget *focus = QApplication::focusWidget();
        if (!focus)
            return;
        const char letter = static_cast<char>('a' + below(26));
        name(QString(QLatin1Char(letter)), focus);
        QTest::keyClick(focus, letter);
    }

    void click(QWidget *target)
    {
        const QPoint at(below(target->width()), below(target->height()));
        QWidget *child = target->childAt(at);
        QWidget *hit = child ? child : target;
        const QPoint place = hit->mapFrom(target, at);
        name(QStringLiteral("click at %1, %2").arg(place.x()).arg(place.y()), hit);
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
        name(QStringLiteral("wheel"), hit);
        QWheelEvent wheel(hit->mapFrom(target, at), target->mapToGlobal(at), {},
                          {0, below(2) == 0 ? 120 : -120}, Qt::NoButton,
                          below(4) == 0 ? Qt::ControlModifier : Qt::NoModifier, Qt::NoScrollPhase, false);
        QApplication::sendEvent(hit, &wheel);
    }

    MainWindow *m_window;
    std::mt19937 m_random;
    int m_left;
    int m_inDialog = 0;
    QElapsedTimer m_timer;
    double m_processorMs = 0;
    QString m_event; ///< the one that is being handled
    bool m_wasWindow = false;
    std::vector<Busy> m_busy;
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
        const std::vector<Busy> busy = monkey.busy();
        QVERIFY(!busy.empty());
        const auto over =
            std::count_if(busy.begin(), busy.end(), [](const Busy &event) { return event.ms > hangMs; });
        qInfo(
            "seed %d, %d events, %zu of them on the window itself: p50 %.2f ms, p95 %.1f ms, p99 %.1f ms, p99.9 %.1f ms, "
            "longest %.1f ms; %lld over %.0f ms",
            seed, count, busy.size(), percentile(busy, 0.5), percentile(busy, 0.95), percentile(busy, 0.99),
            percentile(busy, 0.999), busy.back().ms, static_cast<long long>(over), hangMs);
        for (std::size_t i = busy.size(); i-- > 0 && busy.size() - i <= namedEvents;)
            qInfo("%8.1f ms, of the processor %.1f ms: %s", busy[i].ms, busy[i].processorMs,
                  qPrintable(busy[i].event));
        const auto worst = std::max_element(busy.begin(), busy.end(), [](const Busy &a, const Busy &b) {
            return a.processorMs < b.processorMs;
        });
        qInfo("most of the processor: %.1f ms: %s", worst->processorMs, qPrintable(worst->event));
        qInfo("%lld took more than %.0f ms of the processor",
              static_cast<long long>(std::count_if(
                  busy.begin(), busy.end(), [](const Busy &event) { return event.processorMs > hangMs; })),
              hangMs);
        if (numberIn("KLINEAGE_RANDOM_TIMED", 0) == 1)
            QVERIFY2(over == 0, "the window was busy with one event for more than 100 ms");
        // It still does what it is told.
        QVERIFY(real.settle());
        real.window->resize(1600, 1000);
        real.window->setWanted(QStringLiteral("softmax/sm90/K05"), {});
        QVERIFY(real.settle());
    }
};

KLINEAGE_UI_TEST(TestRandomEvents)
#include "tst_randomevents.moc"
