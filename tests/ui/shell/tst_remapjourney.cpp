// SPDX-License-Identifier: GPL-3.0-or-later
// Every key is a command that can be moved, and no mnemonic is there twice.
#include "tests/paths.h"
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "tests/ui/shell/realwindow.h"
#include "ui/begin/askplandialog.h"
#include "ui/begin/importdialog.h"
#include "ui/begin/importform.h"
#include "ui/begin/newlineagedialog.h"
#include "ui/diff/diffpanel.h"
#include "ui/diff/view/diffview.h"
#include "ui/editor/codeedit.h"
#include "ui/editor/editorpanel.h"
#include "ui/experiments/compare/columnpicker.h"
#include "ui/keys/keyring.h"
#include "ui/keys/keysdialog.h"
#include "ui/runs/gatedesk.h"
#include "ui/runs/poolpanel.h"
#include "ui/runs/startdialog.h"
#include "ui/shell/centre.h"
#include "ui/shell/commands/keylistdialog.h"

#include <QAbstractButton>
#include <QClipboard>
#include <QComboBox>
#include <QDirIterator>
#include <QFile>
#include <QLabel>
#include <QMenu>
#include <QRegularExpression>
#include <QTabBar>

#include <map>

using namespace klineage;
using namespace klineage::ui;

namespace {

/// Files that look for keys themselves, and the keys: what such a widget does everywhere, and no program lets one change. Arrows move in a
/// list, a picture, a row of buttons; Return and Space open what is current; a field that asks one thing ends with Return or Esc, or goes on
/// into its list; a text editor indents.
const std::map<QString, QStringList> &naturalKeys()
{
    static const QStringList moving{"Up", "Down", "Left", "Right", "Home", "End", "PageUp", "PageDown"};
    static const QStringList opening{"Return", "Enter", "Space"};
    static const std::map<QString, QStringList> keys{
        {"cards/relationgraph.cpp", moving + opening},
        {"diff/commentbar.cpp", opening + QStringList{"Escape"}},
        {"diff/view/diffviewinput.cpp", moving + opening},
        {"editor/codeedit.cpp", QStringList{"Return", "Enter", "Tab", "Backtab"}},
        {"experiments/compare/columnpicker.cpp", moving},
        {"highlight/findbar.cpp", opening},
        {"library/facetbar.cpp", moving + opening},
        {"library/librarypanel.cpp", moving + opening + QStringList{"Escape"}},
        {"shell/commands/quickopen.cpp", moving + opening + QStringList{"Escape"}},
        {"story/picture/picturecanvas.cpp", moving + opening},
        {"style/segmentedswitch.cpp", moving},
        {"style/tickmenu.cpp", opening},
    };
    return keys;
}

QString readSource(const QString &path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

/// "Alt+S twice: Save, Stop", of all texts that are on the screen.
QStringList twice(const std::multimap<QChar, QString> &mnemonics)
{
    QStringList problems;
    for (auto at = mnemonics.begin(); at != mnemonics.end(); at = mnemonics.upper_bound(at->first)) {
        if (mnemonics.count(at->first) < 2)
            continue;
        QStringList texts;
        for (auto one = at; one != mnemonics.upper_bound(at->first); ++one)
            texts << one->second;
        problems << QStringLiteral("Alt+%1: %2").arg(at->first).arg(texts.join(QStringLiteral(", ")));
    }
    return problems;
}

void add(std::multimap<QChar, QString> &mnemonics, const QString &text)
{
    const QString plain = QString(text).replace(QStringLiteral("&&"), QString());
    const qsizetype at = plain.indexOf(u'&');
    if (at >= 0 && at + 1 < plain.size())
        mnemonics.emplace(plain.at(at + 1).toUpper(), text);
}

QStringList mnemonicsTwice(const QWidget &window)
{
    std::multimap<QChar, QString> mnemonics;
    for (const QWidget *child : window.findChildren<QWidget *>()) {
        if (!child->isVisibleTo(&window))
            continue;
        if (const auto *button = qobject_cast<const QAbstractButton *>(child))
            add(mnemonics, button->text());
        else if (const auto *label = qobject_cast<const QLabel *>(child); label && label->buddy())
            add(mnemonics, label->text());
        else if (const auto *tabs = qobject_cast<const QTabBar *>(child))
            for (int i = 0; i < tabs->count(); ++i)
                add(mnemonics, tabs->tabText(i));
    }
    return twice(mnemonics);
}

QStringList mnemonicsTwice(const QMenu &menu)
{
    std::multimap<QChar, QString> mnemonics;
    for (const QAction *action : menu.actions()) {
        if (action->isVisible())
            add(mnemonics, action->text());
    }
    return twice(mnemonics);
}

} // namespace

class TestRemapJourney : public UiTest
{
    Q_OBJECT

private slots:
    /// What looks for keys itself is on the list above; QShortcut is nowhere.
    void noKeyIsHidden()
    {
        const QString ui = QString::fromStdString(klineage::test::sourcePath()) + QStringLiteral("/ui/");
        const QRegularExpression looked(QStringLiteral("(?:case|[=!]=) Qt::Key_(\\w+)"));
        int files = 0;
        for (QDirIterator it(ui, {QStringLiteral("*.cpp"), QStringLiteral("*.h")}, QDir::Files,
                             QDirIterator::Subdirectories);
             it.hasNext();) {
            const QString path = it.next();
            const QString name = path.mid(ui.size());
            const QString text = readSource(path);
            QVERIFY2(!text.contains(QStringLiteral("#include <QShortcut>")), qPrintable(name));
            QVERIFY2(!text.contains(QStringLiteral("matches(QKeySequence")), qPrintable(name));
            const auto natural = naturalKeys().find(name);
            for (auto match = looked.globalMatch(text); match.hasNext();) {
                const QString key = match.next().captured(1);
                QVERIFY2(natural != naturalKeys().end() && natural->second.contains(key),
                         qPrintable(QStringLiteral("%1 looks for %2 itself").arg(name, key)));
            }
            files += natural != naturalKeys().end() ? 1 : 0;
        }
        QCOMPARE(files, static_cast<int>(naturalKeys().size())); // none of them is gone
    }

    void letters()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.focus("lineage");
        real.press(Qt::Key_J);
        const QString next = real.row();
        QVERIFY(next != QLatin1String("K05"));
        real.press(Qt::Key_K);
        QCOMPARE(real.row(), QStringLiteral("K05"));
        real.window->actions()->setKey(QStringLiteral("rows.next"), QKeySequence(Qt::Key_N));
        real.press(Qt::Key_J);
        QCOMPARE(real.row(), QStringLiteral("K05"));
        real.press(Qt::Key_N);
        QCOMPARE(real.row(), next);
        // One command for all lists and texts.
        for (const char *panel : {"diff", "library"}) {
            real.focus(panel);
            QVERIFY(real.hasFocus(panel));
            const auto *view = qobject_cast<DiffPanel *>(real.window->panel(QStringLiteral("diff")))->view();
            const int row = view->currentRow();
            const QString before = real.row() + real.card();
            real.press(Qt::Key_N);
            QVERIFY(view->currentRow() != row || real.row() + real.card() != before);
        }
    }

    /// The key moves, and the tooltip that names it with it.
    void theEditorsAndTheDiffsKeys()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        ActionRegistry *keys = real.window->actions();
        auto *editor = qobject_cast<EditorPanel *>(real.window->panel(QStringLiteral("editor")));
        real.window->centre()->showPage(QStringLiteral("editor"));
        QVERIFY(editor->openSelected());
        int asked = 0;
        connect(editor, &EditorPanel::gateRequested, this, [&asked] { ++asked; });
        editor->disconnect(real.window.get()); // it is not to be gated
        keys->setKey(QStringLiteral("editor.gate"), QKeySequence(Qt::CTRL | Qt::Key_B));
        real.press(Qt::Key_Return, Qt::ControlModifier);
        QCOMPARE(asked, 0);
        real.press(Qt::Key_B, Qt::ControlModifier);
        QCOMPARE(asked, 1);
        const auto buttons = editor->findChildren<QAbstractButton *>();
        QVERIFY(std::any_of(buttons.begin(), buttons.end(), [](const QAbstractButton *button) {
            return button->toolTip().contains(QStringLiteral("(Ctrl+B)"));
        }));
        keys->resetKeys();
        real.press(Qt::Key_Enter, Qt::ControlModifier); // that of the number pad is back, too
        QCOMPARE(asked, 2);

        keys->setKey(QStringLiteral("diff.copyCode"), QKeySequence(Qt::CTRL | Qt::Key_Y));
        real.window->centre()->showPage(QStringLiteral("diff"));
        real.focus("diff");
        real.press(Qt::Key_F8);
        real.press(Qt::Key_Down, Qt::ShiftModifier);
        QApplication::clipboard()->setText(QStringLiteral("before"));
        real.press(Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QApplication::clipboard()->text(), QStringLiteral("before"));
        real.press(Qt::Key_Y, Qt::ControlModifier);
        QCOMPARE(
            QApplication::clipboard()->text(),
            qobject_cast<DiffPanel *>(real.window->panel(QStringLiteral("diff")))->view()->selectedText());
    }

    void theyAreListed_data()
    {
        QTest::addColumn<QString>("id");
        for (const char *id :
             {"run.handIn",       "card.save",       "card.leaveQuestion",  "revisions.close",
              "guide.dismiss",    "newLineage.gate", "newLineage.askPlan",  "editor.gate",
              "editor.find",      "editor.findNext", "editor.findPrevious", "editor.closeFind",
              "editor.goToLine",  "diff.find",       "diff.closeFind",      "diff.goToLine",
              "diff.copyCode",    "diff.selectCode", "run.copyCode",        "revisions.copyCode",
              "compare.copyCode", "compare.pickUp",  "rows.next",           "rows.selectPrevious",
              "card.redo"})
            QTest::newRow(id) << QString(QLatin1String(id));
    }

    void theyAreListed()
    {
        QFETCH(QString, id);
        MainWindow window;
        QVERIFY(std::as_const(*window.actions()).find(id));
        const QKeySequence key = std::as_const(*window.actions()).find(id)->action->shortcut();
        QVERIFY(!key.isEmpty());
        QCOMPARE(window.actions()->conflicts(id, key), QStringList());
    }

    void menusHaveNoMnemonicTwice()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        int menus = 0;
        for (QMenu *menu : real.window->findChildren<QMenu *>()) {
            emit menu->aboutToShow();
            const QStringList problems = mnemonicsTwice(*menu);
            QVERIFY2(problems.isEmpty(), qPrintable(menu->title() + u' ' + problems.join(u';')));
            ++menus;
        }
        QVERIFY(menus > 5);
        QCOMPARE(mnemonicsTwice(*real.window), QStringList());
    }

    void dialogsHaveNoMnemonicTwice()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        real.window->beginLineage();
        auto *lineage = real.window->findChild<NewLineageDialog *>();
        QTRY_VERIFY(lineage->isVisible());
        QCOMPARE(mnemonicsTwice(*lineage), QStringList());
        lineage->reject();
        for (const ImportRunner::Kind kind :
             {ImportRunner::Kind::Problems, ImportRunner::Kind::Cards, ImportRunner::Kind::Archive}) {
            ImportDialog dialog(real.window.get());
            dialog.begin(kind, real.folder.path(), {}, {});
            QCOMPARE(mnemonicsTwice(dialog), QStringList());
            dialog.reject();
        }
        const KeyListDialog keys(real.window->actions());
        QCOMPARE(mnemonicsTwice(keys), QStringList());
        const KeysDialog secrets(real.window->findChild<KeyRing *>());
        QCOMPARE(mnemonicsTwice(secrets), QStringList());
        const PoolPanel pool(real.window->findChild<GateDesk *>());
        QCOMPARE(mnemonicsTwice(pool), QStringList());
        QAction up;
        QAction down;
        const std::vector<CompareColumn> columns;
        const ColumnPicker picker(columns, {}, {&up, &down});
        QCOMPARE(mnemonicsTwice(picker), QStringList());
    }

    /// In every kind of run, and with every author.
    void theRunDialogsHaveNoMnemonicTwice()
    {
        const RealWindow real;
        QVERIFY(real.ready);
        StartDialog start(real.window->workspace()->workspace(), nullptr);
        start.show();
        const auto everyAuthor = [](QWidget &dialog) {
            auto *provider = dialog.findChild<QComboBox *>(QStringLiteral("author.provider"));
            QVERIFY(provider && provider->count() > 2);
            for (int i = 0; i < provider->count(); ++i) {
                provider->setCurrentIndex(i);
                const QStringList problems = mnemonicsTwice(dialog);
                QVERIFY2(problems.isEmpty(), qPrintable(provider->currentText() + problems.join(u';')));
            }
        };
        for (const run::Kind kind :
             {run::Kind::Materialize, run::Kind::Deoptimize, run::Kind::Lift, run::Kind::Admit}) {
            start.setKind(kind);
            everyAuthor(start);
        }
        llm::Request request;
        request.purpose = "plan";
        AskPlanDialog ask(request, real.folder.path().toStdString(), nullptr);
        ask.show();
        everyAuthor(ask);
    }
};

KLINEAGE_UI_TEST(TestRemapJourney)
#include "tst_remapjourney.moc"
