// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/talk/prompt.h"

#include <QTest>

using namespace klineage;
using namespace klineage::run;

class TestPrompt : public QObject
{
    Q_OBJECT

private slots:
    void fillsEachPlaceholderAndLooksAtNoValueAgain()
    {
        const auto filled = fillPrompt("a {{x}} b {{y}}{{x}}.", "t", {{"x", "{{y}} {{"}, {"y", "\\1 $0"}});
        QVERIFY2(filled.has_value(), filled ? "" : filled.error().message.c_str());
        QCOMPARE(*filled, std::string("a {{y}} {{ b \\1 $0{{y}} {{."));
    }

    void refuses_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        QTest::newRow("no value") << "{{x}} {{z}}"
                                  << "The prompt 't' has the placeholder 'z', for which there is no value.";
        QTest::newRow("no placeholder")
            << "nothing"
            << "The prompt 't' has no placeholder 'x', for which there is a value.";
        QTest::newRow("not closed") << "{{x}} {{x"
                                    << "does not close";
        QTest::newRow("no name") << "{{x}} {{ x }}"
                                 << "is no identifier";
    }

    void refuses()
    {
        QFETCH(QString, text);
        QFETCH(QString, message);
        const auto filled = fillPrompt(text.toStdString(), "t", {{"x", "1"}});
        QVERIFY(!filled.has_value());
        const QString found = QString::fromStdString(filled.error().message);
        QVERIFY2(found.contains(message), qPrintable(found));
    }

    void knowsTheTemplatesOfTheProgram()
    {
        const auto text = promptTemplate("rederive-request");
        QVERIFY(text.has_value());
        QVERIFY(text->find("{{category}}") != std::string_view::npos);
        const auto wrong = promptTemplate("rederive-requets");
        QVERIFY(!wrong.has_value());
        QVERIFY(wrong.error().message.find("did you mean 'rederive-request'?") != std::string::npos);
    }

    void fencesWhatHoldsFences()
    {
        QCOMPARE(fenced("a", "c"), std::string("```c\na\n```\n"));
        QCOMPARE(fenced("x\n````\n", ""), std::string("`````\nx\n````\n`````\n"));
    }
};

QTEST_GUILESS_MAIN(TestPrompt)
#include "tst_prompt.moc"
