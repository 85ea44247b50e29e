// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/cutoff.h"
#include "core/llm/message.h"
#include "tests/core/llm/scriptedprovider.h"

#include <QTest>

using namespace klineage;
using namespace klineage::llm;

class TestMessage : public QObject
{
    Q_OBJECT

private:
    static Request conversation()
    {
        Request request = question("first");
        request.messages.push_back({Role::Assistant, "second", false});
        request.messages.push_back({Role::User, "third", false});
        return request;
    }

private slots:
    void fingerprintIsStable()
    {
        QCOMPARE(fingerprint(question("a")).size(), 64);
        // Shipped transcripts hold fingerprints: this one never changes.
        QCOMPARE(fingerprint(conversation()),
                 std::string("7c1a61e43299461b4d96fc8d44868083b2164b45cb0c791f2bea3045a038b412"));
    }

    void fingerprintHoldsWhatDecidesTheAnswer_data()
    {
        QTest::addColumn<int>("change");
        QTest::addColumn<bool>("decides");
        QTest::addColumn<QString>("difference");
        QTest::newRow("nothing") << 0 << false << "";
        QTest::newRow("purpose") << 1 << false << "";
        QTest::newRow("cache marks") << 2 << false << "";
        QTest::newRow("model") << 3 << true << "the model is 'other', 'model-1' was recorded";
        QTest::newRow("system") << 4 << true << "the system prompt differs at byte 12: 'You answer.'";
        QTest::newRow("text") << 5 << true << "message 3 differs at byte 6: 'third' was recorded, 'third!'";
        QTest::newRow("fewer") << 6 << true << "there are 1 messages, 3 were recorded";
        QTest::newRow("tokens") << 7 << true << "the limit of output tokens is 7, 1000 was recorded";
        QTest::newRow("temperature") << 8 << true << "the temperature is 0.5, the server's own was recorded";
    }

    void fingerprintHoldsWhatDecidesTheAnswer()
    {
        QFETCH(int, change);
        QFETCH(bool, decides);
        QFETCH(QString, difference);
        Request now = conversation();
        switch (change) {
        case 1:
            now.purpose = "other";
            break;
        case 2:
            now.cacheSystem = false;
            now.messages[0].cacheUpToHere = true;
            break;
        case 3:
            now.model = "other";
            break;
        case 4:
            now.system += "?";
            break;
        case 5:
            now.messages[2].text += "!";
            break;
        case 6:
            now.messages.resize(1);
            break;
        case 7:
            now.maxOutputTokens = 7;
            break;
        case 8:
            now.temperature = 0.5;
            break;
        default:
            break;
        }
        QCOMPARE(fingerprint(now) != fingerprint(conversation()), decides);
        const std::string said = firstDifference(conversation(), now);
        QVERIFY2(said.starts_with(difference.toStdString()) && said.empty() == !decides, said.c_str());
    }

    void checksRequests_data()
    {
        QTest::addColumn<int>("change");
        QTest::addColumn<QString>("message");
        QTest::newRow("sound") << 0 << "";
        QTest::newRow("no message") << 1 << "the request has no message.";
        QTest::newRow("order") << 2 << "message 1 is the assistant's";
        QTest::newRow("end") << 3 << "the last message is not the user's.";
        QTest::newRow("empty") << 4 << "message 3 is empty.";
        QTest::newRow("long") << 5 << "are sent.";
        QTest::newRow("tokens") << 6 << "output tokens is 0";
        QTest::newRow("temperature") << 7 << "the temperature is not between 0 and 2.";
        QTest::newRow("name") << 8 << "longer than 256 bytes.";
    }

    void checksRequests()
    {
        QFETCH(int, change);
        QFETCH(QString, message);
        Request request = conversation();
        if (change == 1)
            request.messages.clear();
        if (change == 2)
            request.messages.erase(request.messages.begin());
        if (change == 3)
            request.messages.pop_back();
        if (change == 4)
            request.messages[2].text.clear();
        if (change == 5)
            request.system.assign(maxRequestBytes, 'x');
        if (change == 6)
            request.maxOutputTokens = 0;
        if (change == 7)
            request.temperature = std::numeric_limits<double>::quiet_NaN();
        if (change == 8)
            request.model.assign(300, 'm');
        const Status checked = checkRequest(request);
        QCOMPARE(checked.has_value(), message.isEmpty());
        if (!checked)
            QVERIFY2(checked.error().message.find(message.toStdString()) != std::string::npos,
                     checked.error().message.c_str());
    }

    void aFullContextIsNoLimitOfTheReply()
    {
        Reply reply;
        reply.stop = StopReason::MaxTokens;
        reply.usage.output = 237; // of llama.cpp's server, whose context has 256 tokens
        QVERIFY(filledTheContext(reply, 1000));
        QVERIFY(!filledTheContext(reply, 237));
        QVERIFY(!filledTheContext(reply, 240)); // servers count a few more or less
        reply.usageKnown = false;
        QVERIFY(!filledTheContext(reply, 1000));
        reply.usageKnown = true;
        reply.stop = StopReason::End;
        QVERIFY(!filledTheContext(reply, 1000));
    }

    void replacesWhatIsNoText()
    {
        QCOMPARE(validUtf8("plain \xc3\xa9"), std::string("plain \xc3\xa9"));
        QCOMPARE(validUtf8("cut \xc3"), std::string("cut \xef\xbf\xbd"));
        QCOMPARE(validUtf8(""), std::string());
    }
};

QTEST_GUILESS_MAIN(TestMessage)
#include "tst_message.moc"
