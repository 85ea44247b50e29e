// SPDX-License-Identifier: GPL-3.0-or-later
// Keys: listed, filtered, moved, kept, put back.
#include "tests/ui/common/modal.h"
#include "tests/ui/common/uitest.h"
#include "ui/shell/commands/actionregistry.h"
#include "ui/shell/commands/keylistdialog.h"
#include "ui/shell/commands/keymodel.h"

#include <QAbstractItemModelTester>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <memory>

using namespace klineage::ui;

class TestKeyList : public UiTest
{
    Q_OBJECT

private slots:
    void conflictsAreOnlyWhereKeysMeet_data()
    {
        QTest::addColumn<QString>("id");
        QTest::addColumn<QKeySequence>("key");
        QTest::addColumn<QStringList>("expected");
        const QKeySequence x(Qt::Key_X);
        QTest::newRow("same panel") << "card.approve" << x << QStringList{"card.reject"};
        QTest::newRow("another panel") << "graph.fit" << x << QStringList{};
        QTest::newRow("everywhere meets all") << "window.stop" << x << QStringList{"card.reject"};
        QTest::newRow("meets what acts everywhere")
            << "graph.fit" << QKeySequence(Qt::CTRL | Qt::Key_P) << QStringList{"window.goTo"};
        QTest::newRow("its own") << "card.reject" << x << QStringList{};
        QTest::newRow("none") << "card.approve" << QKeySequence() << QStringList{};
    }

    void conflictsAreOnlyWhereKeysMeet()
    {
        QFETCH(QString, id);
        QFETCH(QKeySequence, key);
        QFETCH(QStringList, expected);
        const Commands commands;
        QCOMPARE(commands.registry.conflicts(id, key), expected);
    }

    void aTakenKeyMovesOnlyOnTheSecondPress()
    {
        Commands commands;
        KeyListDialog dialog(&commands.registry);
        dialog.show();
        choose(dialog, QStringLiteral("Approve"));
        auto *key = dialog.findChild<QKeySequenceEdit *>();
        QCOMPARE(key->keySequence(), QKeySequence(Qt::Key_A));
        key->setKeySequence(QKeySequence(Qt::Key_X));
        press(dialog, QStringLiteral("Assign"));
        QCOMPARE(commands.key("card.approve"), QKeySequence(Qt::Key_A));
        const auto labels = dialog.findChildren<QLabel *>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel *label) {
            return label->text().contains(QLatin1String("card.reject"));
        }));
        press(dialog, QStringLiteral("Assign"));
        QCOMPARE(commands.key("card.approve"), QKeySequence(Qt::Key_X));
        QCOMPARE(commands.key("card.reject"), QKeySequence());
        press(dialog, QStringLiteral("Reset all"));
        QCOMPARE(commands.key("card.approve"), QKeySequence(Qt::Key_A));
        QCOMPARE(commands.key("card.reject"), QKeySequence(Qt::Key_X));
    }

    void theFilterFindsCommandsAndKeys()
    {
        Commands commands;
        KeyListDialog dialog(&commands.registry);
        const QAbstractItemModelTester tester(dialog.table()->model(),
                                              QAbstractItemModelTester::FailureReportingMode::QtTest);
        QTest::keyClicks(dialog.filterField(), QStringLiteral("ctrl+p"));
        QCOMPARE(dialog.table()->model()->rowCount(), 1);
        QCOMPARE(dialog.table()->model()->index(0, 0).data(KeyModel::IdRole).toString(),
                 QStringLiteral("window.goTo"));
        dialog.filterField()->setText(QStringLiteral("zzz"));
        QCOMPARE(dialog.table()->model()->rowCount(), 0);
        press(dialog, QStringLiteral("Assign")); // nothing is chosen, so nothing happens
        dialog.filterField()->clear();
        QCOMPARE(dialog.table()->model()->rowCount(), 5);
    }

    void aNewKeyActsAtOnceAndTheOldOneNoLonger()
    {
        Commands commands;
        commands.window.show();
        commands.window.activateWindow();
        commands.window.setFocus();
        QVERIFY(takeKeys(commands.window));
        QSignalSpy gone(commands.actions["window.goTo"], &QAction::triggered);
        QTest::keyClick(&commands.window, Qt::Key_P, Qt::ControlModifier);
        QCOMPARE(gone.count(), 1);
        commands.registry.setKey(QStringLiteral("window.goTo"), QKeySequence(Qt::CTRL | Qt::Key_J));
        QTest::keyClick(&commands.window, Qt::Key_P, Qt::ControlModifier);
        QCOMPARE(gone.count(), 1);
        QTest::keyClick(&commands.window, Qt::Key_J, Qt::ControlModifier);
        QCOMPARE(gone.count(), 2);
    }

    void onlyChangesAreKeptAndComeBack()
    {
        const QTemporaryDir folder;
        const QString file = folder.filePath(QStringLiteral("keys.ini"));
        {
            Commands commands;
            commands.registry.setKey(QStringLiteral("card.approve"), QKeySequence(Qt::Key_Y));
            commands.registry.setKey(QStringLiteral("card.reject"), {});
            QSettings settings(file, QSettings::IniFormat);
            commands.registry.save(settings);
            QCOMPARE(settings.allKeys(), (QStringList{"keys/card.approve", "keys/card.reject"}));
        }
        Commands commands;
        QSettings settings(file, QSettings::IniFormat);
        settings.setValue(QStringLiteral("keys/no.suchCommand"), QStringLiteral("Z"));
        QSignalSpy changed(&commands.registry, &ActionRegistry::keysChanged);
        commands.registry.restore(settings);
        QCOMPARE(changed.count(), 1);
        QCOMPARE(commands.key("card.approve"), QKeySequence(Qt::Key_Y));
        QCOMPARE(commands.key("card.reject"), QKeySequence());
        QCOMPARE(commands.key("window.goTo"), QKeySequence(Qt::CTRL | Qt::Key_P));
    }

    void aCommandThatGoesAwayLeavesTheList()
    {
        Commands commands;
        delete commands.actions.take("graph.fit");
        QVERIFY(!std::as_const(commands.registry).find(QStringLiteral("graph.fit")));
        commands.registry.resetKeys();
        QCOMPARE(KeyModel(&commands.registry).rowCount(), 4);
    }

private:
    /// Two commands of the whole window, two of a panel, one of another.
    struct Commands {
        Commands()
        {
            add("window.goTo", "Go to", "Window", Qt::CTRL | Qt::Key_P, Qt::WindowShortcut);
            add("window.stop", "Stop", "Window", Qt::SHIFT | Qt::Key_Escape, Qt::WindowShortcut);
            add("card.approve", "Approve", "SkillCard", Qt::Key_A, Qt::WidgetWithChildrenShortcut);
            add("card.reject", "Reject", "SkillCard", Qt::Key_X, Qt::WidgetWithChildrenShortcut);
            add("graph.fit", "Fit", "Lineage", Qt::Key_F, Qt::WidgetWithChildrenShortcut);
        }
        void add(const char *id, const char *text, const char *group, QKeyCombination key,
                 Qt::ShortcutContext context)
        {
            auto *action = new QAction(QLatin1String(text), &window);
            action->setObjectName(QLatin1String(id));
            action->setShortcut(QKeySequence(key));
            action->setShortcutContext(context);
            window.addAction(action);
            registry.add(action, QLatin1String(group));
            actions[QLatin1String(id)] = action;
        }
        [[nodiscard]] QKeySequence key(const char *id) const
        {
            return actions[QLatin1String(id)]->shortcut();
        }

        QWidget window;
        ActionRegistry registry;
        QMap<QString, QAction *> actions;
    };

    static void choose(const KeyListDialog &dialog, const QString &command)
    {
        dialog.filterField()->setText(command);
        dialog.table()->selectRow(0);
    }

    static void press(const KeyListDialog &dialog, const QString &text)
    {
        for (QPushButton *button : dialog.findChildren<QPushButton *>()) {
            if (button->text() == text)
                return QTest::mouseClick(button, Qt::LeftButton);
        }
        QFAIL("no such button");
    }
};

KLINEAGE_UI_TEST(TestKeyList)
#include "tst_keylist.moc"
