// SPDX-License-Identifier: GPL-3.0-or-later
// The window in a language that is a third longer than English, and whose texts can be told from those of the sources.
#include "tests/ui/common/uitest.h"
#include "ui/shell/docks/layouts.h"
#include "ui/shell/mainwindow.h"

#include <QAbstractButton>
#include <QAction>
#include <QDockWidget>
#include <QLabel>
#include <QLineEdit>
#include <QRegularExpression>
#include <QTabBar>
#include <QTest>
#include <QToolButton>
#include <QTranslator>

using namespace klineage::ui;

namespace {

constexpr QChar mark(0x27e6); ///< ⟦, which begins every text of the language

class Longer : public QTranslator
{
public:
    QString translate(const char *context, const char *text, const char *, int) const override
    {
        const QString english = QString::fromUtf8(text);
        if (english.isEmpty() || QByteArray(context).startsWith('Q')) // Qt's own
            return english;
        return mark + english + QString(english.size() / 3, QLatin1Char('~')) + QChar(0x27e7);
    }
    [[nodiscard]] bool isEmpty() const override { return false; }
};

/// Words that are no language's: names, figures, and what somebody typed.
bool isNoText(const QString &text)
{
    static const QRegularExpression word(QStringLiteral("\\p{L}{2,}"));
    static const QStringList names{QStringLiteral("KLineage"), QStringLiteral("SASS"), QStringLiteral("PTX")};
    return !word.match(text).hasMatch() || names.contains(text)
           || text.startsWith(QLatin1String("klineage-cli ")); // what to type into a shell
}

/// Rows of buttons that are narrowed with their pane: each has its whole text as its tool tip or name.
bool canGiveWay(const QAbstractButton *button)
{
    const QByteArray parent = button->parentWidget()->metaObject()->className();
    return parent.endsWith("FacetBar") || parent.endsWith("TopBar");
}

QString where(const QWidget *widget)
{
    QString path;
    for (; widget; widget = widget->parentWidget()) {
        const QString name = widget->objectName();
        path = QLatin1String(widget->metaObject()->className())
               + (name.isEmpty() ? QString() : QStringLiteral("(%1)").arg(name))
               + (path.isEmpty() ? QString() : QStringLiteral(" > %1").arg(path));
        if (qobject_cast<const QDockWidget *>(widget))
            break;
    }
    return path.section(QStringLiteral(" > "), -3);
}

} // namespace

class TestPseudoLocale : public UiTest
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        QVERIFY(qApp->installTranslator(&m_language));
        m_window = std::make_unique<MainWindow>();
        m_window->resize(1600, 1000);
        m_window->showNoWorkspace(QStringLiteral("⟦none⟧"));
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get()));
    }
    void cleanupTestCase() { m_window.reset(); }

    void everyCommandIsTranslated()
    {
        QStringList english;
        for (const ActionRegistry::Entry &entry : std::as_const(*m_window->actions()).entries()) {
            for (const QString &text : {entry.action->text(), entry.group}) {
                if (!text.startsWith(mark) && !isNoText(text))
                    english << entry.id() + QStringLiteral(": ") + text;
            }
        }
        QVERIFY2(english.isEmpty(), qPrintable(english.join(QLatin1Char('\n'))));
    }

    void everyTextIsTranslated_data() { layouts(); }
    void everyTextIsTranslated()
    {
        QFETCH(QString, layout);
        QVERIFY(m_window->applyLayout(layout));
        QTest::qWait(20);
        QStringList english;
        const auto check = [&](const QWidget *widget, const QString &text) {
            if (!text.isEmpty() && !text.contains(mark) && !isNoText(text))
                english << where(widget) + QStringLiteral(": ") + text.left(60);
        };
        for (const QWidget *widget : m_window->findChildren<QWidget *>()) {
            if (!widget->isVisible()
                || qobject_cast<const QTabBar *>(widget->parentWidget())) // Qt's own buttons
                continue;
            if (widget->objectName() != QLatin1String("devices")) // names and versions, as drivers tell them
                check(widget, widget->toolTip());
            check(widget, widget->accessibleName());
            if (const auto *label = qobject_cast<const QLabel *>(widget))
                check(label, label->text());
            if (const auto *button = qobject_cast<const QAbstractButton *>(widget))
                check(button, button->text());
            if (const auto *field = qobject_cast<const QLineEdit *>(widget))
                check(field, field->placeholderText());
            if (const auto *dock = qobject_cast<const QDockWidget *>(widget))
                check(dock, dock->windowTitle());
            if (const auto *tabs = qobject_cast<const QTabBar *>(widget)) {
                for (int i = 0; i < tabs->count(); ++i)
                    check(tabs, tabs->tabText(i));
            }
        }
        english.removeDuplicates();
        QVERIFY2(english.isEmpty(), qPrintable(english.join(QLatin1Char('\n'))));
    }

    void noButtonCutsItsText_data() { layouts(); }
    void noButtonCutsItsText()
    {
        QFETCH(QString, layout);
        QVERIFY(m_window->applyLayout(layout));
        QTest::qWait(20);
        QStringList cut;
        for (const QAbstractButton *button : m_window->findChildren<QAbstractButton *>()) {
            const auto *tool = qobject_cast<const QToolButton *>(button);
            if (tool && tool->toolButtonStyle() == Qt::ToolButtonIconOnly && !tool->icon().isNull())
                continue;
            if (canGiveWay(button))
                continue;
            if (button->isVisible() && !button->text().isEmpty()
                && button->width() < button->fontMetrics().horizontalAdvance(button->text()))
                cut << where(button) + QStringLiteral(": ") + button->text();
        }
        QVERIFY2(cut.isEmpty(), qPrintable(cut.join(QLatin1Char('\n'))));
    }

private:
    static void layouts()
    {
        QTest::addColumn<QString>("layout");
        for (const WindowLayout &layout : windowLayouts())
            QTest::newRow(qPrintable(layout.id)) << layout.id;
    }

    Longer m_language;
    std::unique_ptr<MainWindow> m_window;
};

KLINEAGE_UI_TEST(TestPseudoLocale)
#include "tst_pseudolocale.moc"
