"""The parts of the class `Tokenizer`, each with the methods for one purpose; `wordpiece_bert.tokenizer` joins them."""
